import { join } from 'node:path';
import type { DialectName } from './dialects.ts';
import { type Group, now } from './orders.ts';

/** Things that are watched in the same way. Each has a number, which rises by one with each change. */
export interface Scenario {
  name: string;
  topics: number;
}

/** A server that pushes bodies, or answers polls with them. */
export interface PushServer {
  name: string;
  pid: number;
  /** The first process of its PostgreSQL, if it has one. */
  database_pid?: number;
  port: number;
  dialect: DialectName;
  /** Returns how a topic of a scenario is watched over a socket. */
  watch(scenario: Scenario, topic: number): Pick<Group, 'path' | 'headers' | 'greeting'>;
  /** Returns how it is polled: a path, to which the number is appended, and lines of the request. */
  poll(scenario: Scenario, topic: number): { path: string; headers: string };
  /** Creates what is watched. */
  prepare(scenario: Scenario): Promise<void>;
  /** Sets all topics to this number. Returns the moment at which that began. */
  change(scenario: Scenario, number: number): Promise<number>;
}

/** What all servers publish. */
export interface Template {
  /** The body. NUMBER stands for its number. */
  body: string;
  /** Lines of the requests that poll. */
  headers: string;
}

/** Starts a server that publishes what each line of its input says. */
export async function startServer(
  name: string,
  command: string[],
  { dialect = 'plain', cwd, headers = '' }: { dialect?: DialectName; cwd?: string; headers?: string } = {},
): Promise<PushServer & AsyncDisposable> {
  const child = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit', ...(cwd ? { cwd } : {}) });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value).trim());
  if (!(port > 0)) throw new Error(`${name} did not print its port`);
  return {
    name,
    pid: child.pid,
    port,
    dialect,
    watch: (scenario, topic) => ({
      path: dialect === 'socket_io' ? '/socket.io/?EIO=4&transport=websocket' : `/${scenario.name}:${topic}`,
      headers: '',
    }),
    poll: (scenario, topic) => ({ path: `/${scenario.name}:${topic}?watch_index=bench.`, headers }),
    async prepare() {},
    async change({ name, topics }, number) {
      const at = now();
      child.stdin.write(`${name} ${topics} ${number}\n`);
      await child.stdin.flush();
      return at;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

/**
 * Starts Bun's own server. `takes`: whether it publishes each change by itself, or together those that come together.
 */
export function startBareBun(
  { body, headers }: Template,
  takes: 'each' | 'several' = 'each',
): Promise<PushServer & AsyncDisposable> {
  const name = takes === 'each' ? 'Bun alone' : 'Bun alone, several in one go';
  return startServer(name, [process.execPath, join(import.meta.dir, 'bare-bun.ts'), body, takes], { headers });
}

/** Starts a route on Elysia that holds polls and answers with Muster's headers. */
export function startBareElysia({ body, headers }: Template): Promise<PushServer & AsyncDisposable> {
  const command = [process.execPath, join(import.meta.dir, 'bare-elysia.ts'), body];
  return startServer("Elysia, with Muster's headers", command, { headers });
}

/** Returns a body as a frame of docs/watch.md. */
export function frameOf({ body }: Template): string {
  return `{"type":"body","key":"k1","body":${body}}`;
}
