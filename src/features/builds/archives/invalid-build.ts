import { ServiceError } from '../../../platform/errors.ts';

/** Length of a name in a message. */
const QUOTED_MAX = 120;

/** The error for a build with an invalid file. */
export class InvalidBuild extends ServiceError<'BUILDS_BUILD_INVALID'> {
  constructor(
    readonly reason: string,
    cause?: unknown,
  ) {
    super('BUILDS_BUILD_INVALID', { error: reason }, { cause });
  }
}

/** Returns the error for a build, with what is wrong with its file. */
export function invalid(reason: string, cause?: unknown): InvalidBuild {
  return new InvalidBuild(reason, cause);
}

/** Returns the beginning of a name, for a message. */
export function quote(name: string): string {
  return JSON.stringify(name.slice(0, QUOTED_MAX));
}
