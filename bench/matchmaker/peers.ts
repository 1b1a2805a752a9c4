import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from '../npm.ts';
import { FIND, type Target } from './targets.ts';

const COLYSEUS = ['@colyseus/core@0.18.17', '@colyseus/schema@5.0.34', '@colyseus/ws-transport@0.18.4'];

/** Starts Bun's own server, or Elysia with the shape of a find. Both answer each find with `answer`. */
export function startBare(opened: AsyncDisposableStack, kind: 'bun' | 'elysia', answer: string): Promise<Target> {
  const name = kind === 'bun' ? 'Bun alone' : 'Elysia, validated and empty';
  const command = [process.execPath, join(import.meta.dir, 'bare.ts'), kind, answer];
  return startPeer(opened, { name, path: '/find', body: FIND.body }, command);
}

/** Installs Colyseus for this run and starts it on Bun. Prints why and returns undefined if it cannot be installed. */
export async function startColyseus(opened: AsyncDisposableStack): Promise<Target | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const problem = await install(directory, COLYSEUS, [join(import.meta.dir, 'peers/colyseus.mjs')]);
  if (problem !== undefined) {
    console.log(`Without Colyseus: ${problem}`);
    return undefined;
  }
  const find = { name: 'Colyseus on Bun, in memory', path: '/matchmake/joinOrCreate/room', body: '{}' };
  return await startPeer(opened, find, [process.execPath, join(directory, 'colyseus.mjs')], directory);
}

/** Starts a process that prints its port, and ends when its standard input does. */
async function startPeer(
  opened: AsyncDisposableStack,
  find: Pick<Target, 'name' | 'path' | 'body'>,
  command: string[],
  cwd = import.meta.dir,
): Promise<Target> {
  const child = Bun.spawn(command, { cwd, stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' });
  opened.defer(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value).trim());
  if (!(port > 0)) throw new Error(`${find.name} did not print its port`);
  return { ...find, pid: child.pid, port, headers: '', prepare: async () => {} };
}
