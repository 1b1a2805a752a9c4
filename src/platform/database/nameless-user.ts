import { dlopen, FFIType } from 'bun:ffi';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../errors.ts';

const PROGRAMS = ['initdb', 'postgres'];
/** What a program imports to learn its user's name, and what takes its place: the first entry of /etc/passwd. */
const LOOKUP = Buffer.from('\0getpwuid\0');
const REPLACEMENT = Buffer.from('\0getpwent\0');

/** Whether the system knows a user by a name. A container that runs with `--user 12345` has no entry for it. */
export function hasName(user_id: number): boolean {
  const { symbols } = dlopen('libc.so.6', { getpwuid: { args: [FFIType.u32], returns: FFIType.ptr } });
  return symbols.getpwuid(user_id) !== null;
}

/**
 * Copies the programs that initialise a cluster, for a user without a name, and returns the directory of the copies. Both
 * ask for the name and end without one, though it is written nowhere: the cluster's owner is named on the command line.
 * The copies import another function in its place (docs/decisions/0024).
 */
export async function copyForNamelessUser(programs: string, directory: string): Promise<string> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(join(directory, 'bin'), { recursive: true, mode: 0o755 });
  // PostgreSQL looks for its other files beside its programs.
  for (const folder of ['lib', 'share']) await symlink(join(programs, folder), join(directory, folder));
  for (const program of PROGRAMS) {
    const bytes = await readFile(join(programs, 'bin', program));
    const place = bytes.indexOf(LOOKUP);
    assert(place >= 0 && bytes.indexOf(LOOKUP, place + 1) < 0, `${program} names the function that it imports once`);
    REPLACEMENT.copy(bytes, place);
    await writeFile(join(directory, 'bin', program), bytes, { mode: 0o755 });
  }
  return directory;
}
