import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from '../npm.ts';

/** A server that answers finds, as a process of its own. */
export interface Peer extends AsyncDisposable {
  name: string;
  pid: number;
  port: number;
  /** What a find is there. */
  path: string;
  body: string;
}

const FIND = { path: '/find', body: JSON.stringify({ game_modes: ['default'] }) };
const COLYSEUS = ['@colyseus/core@0.18.17', '@colyseus/schema@5.0.34', '@colyseus/ws-transport@0.18.4'];

/** Bun's own server; or Elysia with the shape of a find. `answer`: what every find is answered with. */
export function startBare(kind: 'bun' | 'elysia', answer: string): Promise<Peer> {
  const name = kind === 'bun' ? 'Bun alone' : 'Elysia, validated and empty';
  return start({ name, ...FIND }, [process.execPath, join(import.meta.dir, 'bare.ts'), kind, answer]);
}

/** Colyseus on Bun, installed for this run; undefined where it cannot be had, which is said. */
export async function startColyseus(): Promise<Peer | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const problem = await install(directory, COLYSEUS, [join(import.meta.dir, 'peers/colyseus.mjs')]);
  if (problem !== undefined) {
    console.log(`Without Colyseus: ${problem}`);
    await remove();
    return undefined;
  }
  const find = { name: 'Colyseus on Bun, in memory', path: '/matchmake/joinOrCreate/room', body: '{}' };
  const peer = await start(find, [process.execPath, join(directory, 'colyseus.mjs')], directory);
  return {
    ...peer,
    async [Symbol.asyncDispose]() {
      await peer[Symbol.asyncDispose]();
      await remove();
    },
  };
}

async function start(
  find: Pick<Peer, 'name' | 'path' | 'body'>,
  command: string[],
  cwd = import.meta.dir,
): Promise<Peer> {
  const child = Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'inherit' });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value).trim());
  if (!(port > 0)) throw new Error(`${find.name} did not say its port`);
  return {
    ...find,
    pid: child.pid,
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
