import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { gameProblems, makeNameId, withSuffix } from '../../../src/features/games/rules.ts';
import { isNameId } from '../../../src/features/names.ts';

describe("a game's name id", () => {
  const NAMES: [string, string][] = [
    ['Demo', 'demo'],
    ['My  Great: Game!', 'my-great-gam'],
    ['Very-Long-Name', 'very-long-na'],
    ['Eleven-char x', 'eleven-char'],
    ['Ünïcödé', 'unicode'],
    ['ﬁnal', 'final'],
    ['2048', '2048'],
    ['狼', 'game'],
    ['--', 'game'],
    ['- a -', 'a'],
  ];
  for (const [display_name, name_id] of NAMES) {
    test(`of "${display_name}" is derived from its name`, () => {
      expect(makeNameId(display_name)).toBe(name_id);
    });
  }

  test('that is taken gets three random letters or digits', () => {
    const chances = [0, 0.5, 0.999_999];
    expect(withSuffix('demo', () => chances.shift() ?? 0)).toBe('demo-as9');
  });

  test('is valid for any name', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (name, chance) => {
          const name_id = makeNameId(name);
          expect([name_id, withSuffix(name_id, () => chance)].filter(isNameId)).toHaveLength(2);
        },
      ),
    );
  });
});

test('names: each problem of a game is reported by its path', () => {
  const pathsOf = (names: Parameters<typeof gameProblems>[0]) => gameProblems(names).map(({ path }) => path.join('.'));
  expect(pathsOf({ display_name: 'x'.repeat(24), name_id: 'x'.repeat(16) })).toEqual([]);
  expect(pathsOf({ display_name: 'x' })).toEqual([]);
  expect(pathsOf({ display_name: '', name_id: '' })).toEqual(['display-name.too-short', 'name-id.too-short']);
  expect(pathsOf({ display_name: 'x'.repeat(25), name_id: 'x'.repeat(17) })).toEqual([
    'display-name.too-long',
    'name-id.too-long',
  ]);
  expect(pathsOf({ display_name: ' ', name_id: 'A' })).toEqual(['display-name.invalid', 'name-id.invalid']);
});
