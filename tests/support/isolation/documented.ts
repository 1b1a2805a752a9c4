import { expect } from 'bun:test';
import { join } from 'node:path';
import { ON_DISK, type Outcome, type Outcomes } from './probing.ts';

const OUTCOMES: Record<string, Outcome> = { refused: 'refused', '**possible**': 'possible', own: 'own' };
const ATTEMPTS_MIN = 30;
/** Attempts that are not always made: some take long, and a machine without a network has no address. */
const MAY_BE_LEFT_OUT: string[] = [...ON_DISK, "connect to another program at the machine's address"];

/** Expects that a game server could do exactly what docs/isolation-attempts.md documents for a level. */
export async function expectDocumented(level: string, outcomes: Outcomes): Promise<void> {
  const documented = await readDocumented(level);
  const expected = documented.filter(([attempt]) => attempt in outcomes || !MAY_BE_LEFT_OUT.includes(attempt));
  expect(expected.length).toBeGreaterThan(ATTEMPTS_MIN);
  expect<Record<string, string>>(outcomes).toEqual(Object.fromEntries(expected));
}

/** Reads the column of a level in the table: attempts and outcomes, or another text where there is no outcome. */
async function readDocumented(level: string): Promise<[attempt: string, outcome: string][]> {
  const page = await Bun.file(join(import.meta.dir, '../../../docs/isolation-attempts.md')).text();
  const table = page.slice(page.indexOf('| a game server tries to'));
  const cellsOf = (line: string) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
  const [head = [], , ...rows] = table.trimEnd().split('\n').map(cellsOf);
  const column = head.indexOf(level);
  expect(column).toBeGreaterThan(0);
  return rows.map((row) => {
    const [attempt = '', word = ''] = [row[0], row[column]];
    return [attempt, OUTCOMES[word] ?? word];
  });
}
