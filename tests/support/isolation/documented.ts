import { expect } from 'bun:test';
import { join } from 'node:path';
import type { Outcome, Outcomes } from './probing.ts';

const OUTCOMES: Record<string, Outcome> = { refused: 'refused', '**possible**': 'possible', own: 'own' };
const ATTEMPTS_MIN = 30;

/** Expects that a game server could do exactly what docs/isolation.md documents for a level. */
export async function expectDocumented(level: string, outcomes: Outcomes): Promise<void> {
  const documented = await readDocumented(level);
  const tried = Object.entries(outcomes).map(([attempt, outcome]) => ({ attempt, outcome }));
  expect(tried.length).toBeGreaterThan(ATTEMPTS_MIN);
  expect(tried).toEqual(tried.map(({ attempt }) => ({ attempt, outcome: documented[attempt] ?? 'refused' })));
}

/** Reads the column of a level in the table. */
async function readDocumented(level: string): Promise<Record<string, Outcome | undefined>> {
  const page = await Bun.file(join(import.meta.dir, '../../../docs/isolation.md')).text();
  const table = page.slice(page.indexOf('| a game server tries to'));
  const cellsOf = (line: string) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
  const [head = [], , ...rows] = table.trimEnd().split('\n').map(cellsOf);
  const column = head.indexOf(level);
  expect(column).toBeGreaterThan(0);
  return Object.fromEntries(rows.map((row) => [row[0], OUTCOMES[row[column] ?? '']]));
}
