import { ServiceError } from '../platform/errors.ts';

/** The path of invalid content in a request (specification: Validation error). */
export interface ContentProblem {
  path: string[];
}

/** The longest names, as in the reference API. */
export const NAME_ID_BYTES_MAX = 16;
export const LENIENT_NAME_ID_BYTES_MAX = 64;
export const DISPLAY_NAME_BYTES_MAX = 24;
export const LONG_DISPLAY_NAME_BYTES_MAX = 128;

/** Accepts names for addresses: lower-case letters, digits and single dashes inside. */
export function isNameId(text: string): boolean {
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(text) && Buffer.byteLength(text) <= NAME_ID_BYTES_MAX;
}

/** Accepts names of game modes: like name ids, with capitals and underscores, up to 64 bytes. */
export function isLenientNameId(text: string): boolean {
  return /^[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*$/.test(text) && Buffer.byteLength(text) <= LENIENT_NAME_ID_BYTES_MAX;
}

/**
 * Hangul and Khmer fillers, the braille blank and the combining grapheme joiner. They are invisible, but Unicode classes them
 * as letters, symbols or marks.
 */
const BLANKS = /\u034f|[\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/u;

/** Returns what is wrong with a display name, or undefined. */
export function displayNameProblem(text: string, bytes_max: number): 'too-short' | 'too-long' | 'invalid' | undefined {
  if (text.length === 0) return 'too-short';
  if (Buffer.byteLength(text) > bytes_max) return 'too-long';
  // Allows single blanks inside, and no characters that are invisible or change the direction of text.
  const is_spaced = /^\S+( \S+)*$/u.test(text) && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text) && !BLANKS.test(text);
  // A mark shows only on another character.
  return is_spaced && /[\p{L}\p{N}\p{P}\p{S}]/u.test(text) ? undefined : 'invalid';
}

const BIO_BYTES_MAX = 200;
const BIO_LINES_MAX = 5;

/**
 * Accepts up to five lines of text, with blanks and newlines as the only white space, like the reference API. Counts
 * lines because the pattern of that API takes half a minute for some texts.
 */
export function isBio(text: string): boolean {
  if (Buffer.byteLength(text) > BIO_BYTES_MAX) return false;
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.length <= BIO_LINES_MAX && !/[^\S \n]|[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u.test(text);
}

/** Returns what is wrong with a name id, as the last element of its error's path, or undefined. */
export function nameIdProblem(text: string): 'too-short' | 'too-long' | 'invalid' | undefined {
  if (text.length === 0) return 'too-short';
  if (Buffer.byteLength(text) > NAME_ID_BYTES_MAX) return 'too-long';
  return isNameId(text) ? undefined : 'invalid';
}

/** Problems that a message names. The metadata has all of them. */
const NAMED_PROBLEMS_MAX = 8;

/**
 * What to do about a problem, by the last parts of its path. `*` stands for a part that a request chooses: a label, or a
 * position in a list.
 */
export type ProblemAdvice = ReadonlyMap<string, string>;

const NAME_ADVICE: ProblemAdvice = new Map([
  ['bio.invalid', `at most ${BIO_LINES_MAX} lines and ${BIO_BYTES_MAX} bytes, without invisible characters`],
  ['display-name.too-short', 'at least one character'],
  ['display-name.invalid', 'no blanks at its ends, and never two in a row; no other invisible characters'],
  [
    'display-name.too-long',
    `at most ${DISPLAY_NAME_BYTES_MAX} bytes for a game, group or person, and ${LONG_DISPLAY_NAME_BYTES_MAX} for others`,
  ],
  [
    'display-name.not-unique',
    'another version of this game has that name, so choose another, or use one from versions/reserve-name',
  ],
  [
    'label-invalid',
    `only lower-case letters and digits, with single dashes between them; at most ${NAME_ID_BYTES_MAX} characters`,
  ],
  ['name-id.invalid', 'only lower-case letters and digits, with single dashes between them'],
  ['name-id.not-unique', 'that name is taken, so choose another'],
  ['name-id.too-long', `at most ${NAME_ID_BYTES_MAX} characters`],
  ['name-id.too-short', 'at least one character'],
]);

/**
 * Throws VALIDATION_ERROR with the paths of all problems, if there are any. The message names the first ones. `advice`: for
 * problems other than those of names.
 */
export function refuseProblems(errors: ContentProblem[], advice?: ProblemAdvice): void {
  if (errors.length === 0) return;
  const named = errors.slice(0, NAMED_PROBLEMS_MAX).map((problem) => describeProblem(problem, advice));
  const more = errors.length > named.length ? [`${errors.length - named.length} more`] : [];
  throw validationError(errors, [...named, ...more].join(', '));
}

/** Throws VALIDATION_ERROR with one problem and advice about it. */
export function refuseProblem(path: string[], advice: string): never {
  throw validationError([{ path }], `${path.join('.')} (${advice})`);
}

function validationError(errors: ContentProblem[], error: string): ServiceError {
  return new ServiceError('VALIDATION_ERROR', { error }, { metadata: { errors } });
}

/** Returns the path of a problem, and in parentheses what to do about it. */
export function describeProblem({ path }: ContentProblem, advice?: ProblemAdvice): string {
  const text = path.join('.');
  const found = (advice && findAdvice(path, advice)) ?? findAdvice(path, NAME_ADVICE);
  return found === undefined ? text : `${text} (${found})`;
}

/** Returns the advice that matches the most of a path's last parts. */
function findAdvice(path: readonly string[], advice: ProblemAdvice): string | undefined {
  const parts = path.map((part) => (/^(\d+|\*.*\*)$/s.test(part) ? '*' : part));
  const ends = parts.map((_, index) => parts.slice(index).join('.'));
  return ends.map((end) => advice.get(end)).find((found) => found !== undefined);
}
