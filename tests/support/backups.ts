import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestGame } from './game.ts';
import { COMMAND, type Home, type Program } from './program.ts';
import { waitFor } from './wait.ts';

/** A folder for backups. */
export async function makeBackupFolder(): Promise<AsyncDisposable & { path: string; file: string }> {
  const path = await mkdtemp(join(tmpdir(), 'muster-backups-'));
  return {
    path,
    file: join(path, 'a.backup'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** The command line of a command of the program. */
export const commandFor = (...args: string[]): string[] => [...COMMAND, ...args];

/** Runs a command of a home until it ends. */
export async function runOn(home: Home, name: 'backup' | 'restore', file: string) {
  return await home.run({ command: commandFor(name, file) });
}

/** Waits until a lobby whose server was not restored has ended. */
export async function waitForEnd({ api }: Pick<Program, 'api'>, game: TestGame, ended_lobby_id: string): Promise<void> {
  await waitFor(async () => {
    const { lobbies } = await api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token });
    return lobbies.every(({ lobby_id }: { lobby_id: string }) => lobby_id !== ended_lobby_id);
  }, 'the lobby whose server was not restored to end');
}

/** What `muster restore` prints when it is done. */
export const RESTORED = /^The backup of \S+ is restored: start "muster serve" with these settings\.\n$/;
