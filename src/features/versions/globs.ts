/** Each `*` or `**` multiplies the ways in which a path can be tried; with more of them a match takes milliseconds. */
const WILDCARDS_MAX = 8;
const BRACES_MAX = 4;
/** Extended patterns of shells, like `!(a)` and `@(a|b)`: Bun.Glob reads them as plain characters. */
const EXTENDED = /[!@+?*]\(|\|/;

/** What is wrong with a glob, as the last part of a problem's path. */
export function globProblem(glob: string): 'invalid' | 'too-complex' | undefined {
  if (glob === '' || EXTENDED.test(glob)) return 'invalid';
  const wildcards = glob.match(/\*+/g)?.length ?? 0;
  const braces = glob.match(/\{/g)?.length ?? 0;
  return wildcards > WILDCARDS_MAX || braces > BRACES_MAX ? 'too-complex' : undefined;
}

/**
 * Whether a path matches a glob: `*` and `?` within a name, `**` across names, `{a,b}`, `[a-z]`, `[!a-z]`, and `!` in
 * front for all others. Bun.Glob goes back to the latest `*` and `**` only, where a regular expression tries every
 * combination of them. A glob that is refused now, but was stored by an older release, matches nothing.
 */
export function matchesGlob(glob: string, path: string): boolean {
  return globProblem(glob) === undefined && new Bun.Glob(glob.replace(/^\//, '')).match(path);
}
