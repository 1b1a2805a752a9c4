import { existsSync, readFileSync } from 'node:fs';
import { chown, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sql } from 'drizzle-orm';
import { syncPath } from '../system/durable.ts';
import { signalProcess } from '../system/processes.ts';
import { openDatabase } from './database.ts';
import type { EmbeddedPostgres } from './embedded.ts';
import { findPostmaster } from './postmaster.ts';

const PASSWORD_BYTES = 24;
/** What the server asks of its clients. It listens on its unix socket only. */
const CLIENT_RULES = `# Muster replaces this file.
local all all scram-sha-256
local replication all scram-sha-256
`;
/** How the rules of initdb begin. */
const FIRST_RULES = /^# PostgreSQL Client Authentication Configuration File/;
const CLIENT_RULES_WITHOUT_PASSWORD = CLIENT_RULES.replaceAll('scram-sha-256', 'trust');

/**
 * Returns how to connect to the embedded PostgreSQL. Makes it ask for a password, unless Muster runs as root and there is
 * none. Without root, game servers run as Muster's user: they can reach the socket, but their isolation keeps them from the
 * file with the password. As root, game servers run as other users, so PostgreSQL trusts the socket, unless it already has
 * a password. Every step may be repeated after a crash.
 */
export async function requirePassword(
  { connection }: Pick<EmbeddedPostgres, 'connection'>,
  { directory, is_root }: { directory: string; is_root: boolean },
): Promise<EmbeddedPostgres['connection']> {
  const file = passwordFile(directory);
  const known = readPassword(file);
  if (is_root && known === undefined) return connection;
  const password = known ?? Buffer.from(crypto.getRandomValues(new Uint8Array(PASSWORD_BYTES))).toString('base64url');
  const protected_connection = { ...connection, password };
  const rules = join(directory, 'cluster/pg_hba.conf');
  if (known !== undefined && readFileSync(rules, 'utf8') === CLIENT_RULES) return protected_connection;

  await using database = openDatabase(protected_connection, 1);
  // The password has no character that must be escaped.
  await database.queries.execute(sql.raw(`alter role ${connection.user} password '${password}'`));
  // Before the server asks for it: without the file, nothing could connect any more.
  await replaceFile(file, `*:*:*:${connection.user}:${password}\n`);
  await replaceFile(rules, CLIENT_RULES);
  await database.queries.execute(sql`select pg_reload_conf()`);
  return protected_connection;
}

/**
 * Makes the server of a directory trust its socket if it would ask for a password that is lost, as after a restore of the
 * cluster alone, or if its rules are damaged: earlier releases could leave them empty after a power failure. Then
 * `requirePassword` sets a password.
 */
export async function replaceLostPassword(directory: string): Promise<void> {
  const rules = join(directory, 'cluster/pg_hba.conf');
  if (!existsSync(rules)) return;
  const text = await readFile(rules, 'utf8');
  const is_password_lost = text === CLIENT_RULES && readEmbeddedPassword(directory) === undefined;
  const is_whole = text === CLIENT_RULES || text === CLIENT_RULES_WITHOUT_PASSWORD || FIRST_RULES.test(text);
  if (is_whole && !is_password_lost) return;
  await replaceFile(rules, CLIENT_RULES_WITHOUT_PASSWORD);
  // A server that outlived an earlier process reads its rules again.
  const running = findPostmaster(join(directory, 'cluster'));
  if (running) signalProcess(running.pid, 'SIGHUP');
}

/** Returns the password of the embedded PostgreSQL in a directory; undefined if it asks for none. */
export const readEmbeddedPassword = (directory: string): string | undefined => readPassword(passwordFile(directory));

export const passwordFile = (directory: string) => join(directory, 'pgpass');

/** Reads the password from a file in the form of libpq, whose programs can use it too. Undefined if there is none. */
function readPassword(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(':')[4] : undefined;
}

/** Replaces a file, or creates it. It keeps its owner: as root, PostgreSQL has another user, which reads its rules. */
async function replaceFile(file: string, text: string): Promise<void> {
  const unfinished = `${file}.unfinished`;
  await writeFile(unfinished, text, { mode: 0o600 });
  if (existsSync(file) && process.getuid?.() === 0) {
    const { uid, gid } = await stat(file);
    await chown(unfinished, uid, gid);
  }
  await syncPath(unfinished);
  await rename(unfinished, file);
  await syncPath(dirname(file));
}
