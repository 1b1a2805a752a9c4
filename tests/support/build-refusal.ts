import { ServiceError } from '../../src/platform/errors.ts';

const BEGINNING = 'The build is invalid: ';

/**
 * Waits until a build is unpacked. Returns why it was refused, without the common beginning of all refusals; undefined if
 * it was accepted. Fails for any error but BUILDS_BUILD_INVALID.
 */
export async function buildRefusalOf(work: Promise<void>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'BUILDS_BUILD_INVALID') throw error;
    if (!error.message.startsWith(BEGINNING)) throw new Error(`a refusal of another kind: ${error.message}`);
    return error.message.slice(BEGINNING.length);
  }
}
