import { type ContentProblem, DISPLAY_NAME_BYTES_MAX, displayNameProblem, nameIdProblem } from '../names.ts';

const SLUG_MAX = 12;
const NAMELESS = 'game';
const SUFFIX_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const SUFFIX_LENGTH = 3;

/** Returns what is wrong with a game's names. */
export function gameProblems(wanted: { display_name: string; name_id?: string | undefined }): ContentProblem[] {
  const display_name = displayNameProblem(wanted.display_name, DISPLAY_NAME_BYTES_MAX);
  const name_id = wanted.name_id === undefined ? undefined : nameIdProblem(wanted.name_id);
  return [
    ...(display_name ? [{ path: ['display-name', display_name] }] : []),
    ...(name_id ? [{ path: ['name-id', name_id] }] : []),
  ];
}

/** Returns up to 12 letters and digits of a game's name. */
export function makeNameId(display_name: string): string {
  const slug = display_name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, SLUG_MAX)
    .replace(/-+$/, '');
  return slug === '' ? NAMELESS : slug;
}

/** Returns a name id with three random letters or digits, for a game whose plain one is taken. */
export function withSuffix(name_id: string, random: () => number): string {
  const pick = () => SUFFIX_LETTERS.charAt(Math.floor(random() * SUFFIX_LETTERS.length));
  return `${name_id}-${Array.from({ length: SUFFIX_LENGTH }, pick).join('')}`;
}
