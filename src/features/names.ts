import { ServiceError } from '../platform/errors.ts';

/** Where in a request the content is wrong (specification: Validation error). */
export interface ContentProblem {
  path: string[];
}

/** The rules for names are the field's (field-behaviour 8.1). Lengths are in bytes. */
export const NAME_ID_BYTES_MAX = 16;
export const LENIENT_NAME_ID_BYTES_MAX = 64;
export const DISPLAY_NAME_BYTES_MAX = 24;
export const LONG_DISPLAY_NAME_BYTES_MAX = 128;

/** A name in addresses: lower-case letters, digits and single dashes within. */
export function isNameId(text: string): boolean {
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(text) && Buffer.byteLength(text) <= NAME_ID_BYTES_MAX;
}

/** The same with capitals and underscores, up to 64 bytes: game modes. */
export function isLenientNameId(text: string): boolean {
  return /^[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*$/.test(text) && Buffer.byteLength(text) <= LENIENT_NAME_ID_BYTES_MAX;
}

/** What is wrong with a name that people read; undefined when nothing is. */
export function displayNameProblem(text: string, bytes_max: number): 'too-short' | 'too-long' | 'invalid' | undefined {
  if (text.length === 0) return 'too-short';
  if (Buffer.byteLength(text) > bytes_max) return 'too-long';
  // No white space but single blanks within, and nothing that cannot be seen or turns the text around.
  return /^\S+( \S+)*$/u.test(text) && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text) ? undefined : 'invalid';
}

const BIO_BYTES_MAX = 200;
const BIO_LINES_MAX = 5;

/**
 * Up to five lines of text (field-behaviour 8.1): blanks and newlines are its only white space. The lines are counted; the
 * field's pattern for them takes half a minute for some texts.
 */
export function isBio(text: string): boolean {
  if (Buffer.byteLength(text) > BIO_BYTES_MAX) return false;
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.length <= BIO_LINES_MAX && !/[^\S \n]|[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u.test(text);
}

/** What is wrong with a name id, as the last element of its error's path. */
export function nameIdProblem(text: string): 'too-short' | 'too-long' | 'invalid' | undefined {
  if (text.length === 0) return 'too-short';
  if (Buffer.byteLength(text) > NAME_ID_BYTES_MAX) return 'too-long';
  return isNameId(text) ? undefined : 'invalid';
}

/** What to do about problems whose path does not say it. */
const ADVICE = new Map([
  [
    'display-name.not-unique',
    'another version of this game has that name, so choose another, or use one from versions/reserve-name',
  ],
  ['name-id.not-unique', 'that name is taken, so choose another'],
]);

/** Throws VALIDATION_ERROR, which names every place, when there are problems. */
export function refuseProblems(errors: ContentProblem[]): void {
  if (errors.length === 0) return;
  const error = errors.map(({ path }) => describeProblem(path.join('.'))).join(', ');
  throw new ServiceError('VALIDATION_ERROR', { error }, { metadata: { errors } });
}

function describeProblem(path: string): string {
  const advice = ADVICE.get(path);
  return advice === undefined ? path : `${path} (${advice})`;
}
