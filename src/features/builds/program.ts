import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../../platform/errors.ts';
import { programInside } from './rules.ts';

/** Checks that the program of a command is in the unpacked archive, if it should be. Throws BUILDS_BUILD_INVALID. */
export async function checkProgram(directory: string, command: string[]): Promise<void> {
  const program = programInside(command);
  if (program === undefined) return;
  // A file that cannot be read here could not be started either.
  const file = await stat(join(directory, program)).catch(() => undefined);
  const refusal = (problem: string) =>
    new ServiceError('BUILDS_BUILD_INVALID', { error: `the command ${JSON.stringify(command[0])} ${problem}` });
  if (!file?.isFile()) throw refusal('is not a file in the archive');
  if ((file.mode & 0o111) === 0) throw refusal('is not executable; run chmod +x before packing it');
}
