import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeArchive } from '../../src/platform/backup/archive-writer.ts';
import { HEADER_ENTRY, writeHeader } from '../../src/platform/backup/header.ts';
import type { Database } from '../../src/platform/database/database.ts';
import { copyDatabase, type TableShape } from '../../src/platform/database/table-copies.ts';
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

/** Writes a backup with the migrations of a database, and with other content, by the names of its entries. */
export async function writeBackupOf(
  database: Database,
  file: string,
  { tables, entries }: { tables: TableShape[]; entries: Record<string, string> },
): Promise<void> {
  const { migrations } = await copyDatabase(database, async (snapshot) => snapshot);
  const { signal } = new AbortController();
  await writeArchive(file, { signal, onWritten() {}, onChecking() {} }, async ({ add }) => {
    const header = writeHeader({ version: '0.0.9', create_ts: new Date().toISOString(), migrations, tables });
    await add(HEADER_ENTRY, [header], header.length);
    for (const [name, content] of Object.entries(entries)) {
      const bytes = Buffer.from(content);
      await add(name, [bytes], bytes.length);
    }
  });
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
