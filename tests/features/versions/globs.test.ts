import { describe, expect, test } from 'bun:test';
import { globProblem, matchesGlob } from '../../../src/features/versions/globs.ts';

describe('globs: a path matches', () => {
  const CASES: [glob: string, matching: string[], others: string[]][] = [
    ['*.js', ['a.js', '.js'], ['deep/a.js', 'a.jsx']],
    ['**/*.js', ['a.js', 'deep/er/a.js'], ['a.css']],
    ['/assets/**', ['assets/a.png', 'assets/deep/.hidden'], ['a.png', 'other/assets/a.png']],
    ['Build/*.{js,wasm}.gz', ['Build/game.js.gz', 'Build/game.wasm.gz'], ['Build/game.data.gz']],
    ['[ab]?.txt', ['a1.txt', 'bä.txt'], ['c1.txt', 'a.txt']],
    ['[!ab].txt', ['c.txt'], ['a.txt']],
    ['!**/*.html', ['a.js'], ['index.html', 'deep/index.html']],
    ['!/private/**', ['a.js', 'other/private/a.js'], ['private/a.js', 'private/deep/a.js']],
    ['!!/a/**', ['a/b.js'], ['b.js']],
    ['a\\*b', ['a*b'], ['axb']],
    ['file (1).txt', ['file (1).txt'], ['file 1.txt']],
  ];
  for (const [glob, matching, others] of CASES) {
    test(`${glob}: ${matching.join(', ')}; not ${others.join(', ')}`, () => {
      expect(globProblem(glob)).toBeUndefined();
      expect([...matching, ...others].filter((path) => matchesGlob(glob, path))).toEqual(matching);
    });
  }
});

describe('globs: a pattern is refused', () => {
  const CASES = [
    ['', 'invalid'],
    ['@(a|b).js', 'invalid'],
    ['!(a).js', 'invalid'],
    ['(a|b).js', 'invalid'],
    ['*a'.repeat(9), 'too-complex'],
    ['**/a/'.repeat(9), 'too-complex'],
    ['{a,b}'.repeat(5), 'too-complex'],
    ['{'.repeat(500), 'too-complex'],
  ] as const;
  for (const [glob, problem] of CASES) {
    test(`${glob.slice(0, 30)}: ${problem}, and matches nothing`, () => {
      expect(globProblem(glob)).toBe(problem);
      for (const path of ['', 'a', 'a.js', glob, 'a'.repeat(1_000)]) expect(matchesGlob(glob, path)).toBe(false);
    });
  }
});
