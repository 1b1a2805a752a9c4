import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../../platform/errors.ts';
import { programInside } from './rules.ts';

/** Looks whether what a command starts is in the unpacked archive, if it is meant to be. Throws BUILDS_BUILD_INVALID. */
export async function checkProgram(directory: string, command: string[]): Promise<void> {
  const program = programInside(command);
  if (program === undefined) return;
  // Whatever hinders us would hinder its start.
  const file = await stat(join(directory, program)).catch(() => undefined);
  const refuse = (problem: string) =>
    new ServiceError('BUILDS_BUILD_INVALID', { error: `the command ${JSON.stringify(command[0])} ${problem}` });
  if (!file?.isFile()) throw refuse('is not a file in the archive');
  if ((file.mode & 0o111) === 0) throw refuse('is not executable; run chmod +x before packing it');
}
