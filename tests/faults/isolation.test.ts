import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { canTry, LEVELS, probe } from '../support/isolation/levels.ts';
import { IS_LONG } from '../support/length.ts';

const ATTEMPTS_MIN = 30;
/** The levels that the short run tries. */
const MOST_USED = ['root', 'user'];

describe.skipIf(!canTry())('a hostile game server can do what docs/isolation.md says, and no more:', () => {
  test.each(LEVELS.filter(({ name }) => IS_LONG || MOST_USED.includes(name)))(
    '$name',
    async (level) => {
      const documented = await readDocumented(level.name);
      const outcomes = Object.entries(await probe(level)).map(([attempt, outcome]) => ({
        attempt,
        is_possible: outcome === 'possible',
      }));
      expect(outcomes.length).toBeGreaterThan(ATTEMPTS_MIN);
      expect(outcomes).toEqual(documented);
    },
    120_000,
  );
});

/** Reads the column of a level in the table. */
async function readDocumented(level: string): Promise<{ attempt: string; is_possible: boolean }[]> {
  const page = await Bun.file(join(import.meta.dir, '../../docs/isolation.md')).text();
  const table = page.slice(page.indexOf('| a game server tries to'));
  const [head = [], , ...rows] = table
    .trimEnd()
    .split('\n')
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const column = head.indexOf(level);
  expect(column).toBeGreaterThan(0);
  return rows.map((row) => ({ attempt: row[0] ?? '', is_possible: row[column] === '**possible**' }));
}
