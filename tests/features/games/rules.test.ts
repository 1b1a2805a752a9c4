import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { gameProblems, makeNameId } from '../../../src/features/games/rules.ts';
import { isNameId } from '../../../src/features/names.ts';

describe("a game's name id", () => {
  const NAMES: [string, string][] = [
    ['Demo', 'demo-000'],
    ['My  Great: Game!', 'my-great-gam-000'],
    ['Very-Long-Name', 'very-long-na-000'],
    ['Eleven-char x', 'eleven-char-000'],
    ['Ünïcödé', 'unicode-000'],
    ['ﬁnal', 'final-000'],
    ['2048', '2048-000'],
    ['狼', 'game-000'],
    ['--', 'game-000'],
    ['- a -', 'a-000'],
  ];
  for (const [display_name, name_id] of NAMES) {
    test(`of "${display_name}" is derived from its name`, () => {
      expect(makeNameId(display_name, () => 26 / 36)).toBe(name_id);
    });
  }

  test('ends with three random letters or digits', () => {
    const chances = [0, 0.5, 0.999_999];
    expect(makeNameId('Demo', () => chances.shift() ?? 0)).toBe('demo-as9');
  });

  test('is valid for any name', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (name, chance) => {
          expect(isNameId(makeNameId(name, () => chance))).toBe(true);
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
