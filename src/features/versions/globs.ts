/** Each `*` or `**` makes a match slower; with more of them it takes milliseconds. */
export const WILDCARDS_MAX = 8;
export const BRACES_MAX = 4;
/** Extended patterns of shells, like `!(a)` and `@(a|b)`, which Bun.Glob reads as plain characters. */
const EXTENDED = /[!@+?*]\(|\|/;

/** Returns what is wrong with a glob, as the last part of a problem's path. */
export function globProblem(glob: string): 'invalid' | 'too-complex' | undefined {
  if (glob === '' || EXTENDED.test(glob)) return 'invalid';
  const wildcards = glob.match(/\*+/g)?.length ?? 0;
  const braces = glob.match(/\{/g)?.length ?? 0;
  return wildcards > WILDCARDS_MAX || braces > BRACES_MAX ? 'too-complex' : undefined;
}

/**
 * Returns whether a path matches a glob: `*` and `?` within a name, `**` across names, `{a,b}`, `[a-z]`, `[!a-z]`, and
 * a leading `!` to negate. Uses Bun.Glob because it backtracks only to the latest `*` and `**`, where a regular
 * expression tries every combination. Invalid globs that an older release stored match nothing.
 */
export function matchesGlob(glob: string, path: string): boolean {
  return globProblem(glob) === undefined && new Bun.Glob(glob.replace(/^(!*)\//, '$1')).match(path);
}
