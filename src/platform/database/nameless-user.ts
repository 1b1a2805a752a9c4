import { dlopen, FFIType } from 'bun:ffi';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../errors.ts';

const PROGRAMS = ['initdb', 'postgres'];
/** The function that a program imports to get its user's name, and its replacement: the first entry of /etc/passwd. */
const LOOKUP = Buffer.from('\0getpwuid\0');
const REPLACEMENT = Buffer.from('\0getpwent\0');

/** Returns whether a user has a name. In a container that runs with `--user 12345`, the user has none. */
export function hasName(user_id: number): boolean {
  const { symbols } = dlopen('libc.so.6', { getpwuid: { args: [FFIType.u32], returns: FFIType.ptr } });
  return symbols.getpwuid(user_id) !== null;
}

/**
 * Copies the programs that initialize a cluster, for a user without a name, and returns the directory of the copies. The
 * programs look up the name and fail without one, although they do not use it: the command line names the owner of the
 * cluster. The copies import another function instead (docs/decisions/0024).
 */
export async function copyForNamelessUser(programs: string, directory: string): Promise<string> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(join(directory, 'bin'), { recursive: true, mode: 0o755 });
  // PostgreSQL looks for its other files beside its programs.
  for (const folder of ['lib', 'share']) await symlink(join(programs, folder), join(directory, folder));
  for (const program of PROGRAMS) {
    const bytes = await readFile(join(programs, 'bin', program));
    const offset = bytes.indexOf(LOOKUP);
    assert(offset >= 0 && bytes.indexOf(LOOKUP, offset + 1) < 0, `${program} has the name of the function once`);
    REPLACEMENT.copy(bytes, offset);
    await writeFile(join(directory, 'bin', program), bytes, { mode: 0o755 });
  }
  return directory;
}
