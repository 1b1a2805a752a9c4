import type { Run } from './trial.ts';

/** What was to be reached, and what was. */
export interface Goal {
  what: string;
  limit: string;
  figure: string;
  is_met: boolean;
}

/** The middle of what several runs have shown, each value for itself. */
export function medianOf(runs: Run[]): Run {
  const middle = (name: keyof Run) => {
    const sorted = runs.map((run) => run[name]).sort((one, other) => one - other);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  return {
    bodies: middle('bodies'),
    changes: middle('changes'),
    p50: middle('p50'),
    p99: middle('p99'),
    cores: middle('cores'),
    database_cores: middle('database_cores'),
    load_cores: middle('load_cores'),
    other_cores: middle('other_cores'),
  };
}

/** Prints lines below a title, the columns as wide as what stands in them. */
export function printTable(title: string, rows: string[][]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  console.log(`\n${title}`);
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(`  ${cells.join('  ')}`);
  }
}

export function printGoals(goals: Goal[]): void {
  const rows = goals.map(({ what, limit, figure, is_met }) => [what, limit, figure, is_met ? 'met' : 'NOT MET']);
  printTable('Goals', [['', 'goal', 'measured', ''], ...rows]);
}

export const show = {
  perSecond: (value: number) => Math.round(value).toLocaleString('en'),
  cores: (value: number) => value.toFixed(2),
  milliseconds: (value: number) => value.toFixed(1),
  microseconds: (seconds: number) => (seconds * 1_000_000).toFixed(1),
  ratio: (value: number) => `${value.toFixed(2)}×`,
  kilobytes: (bytes: number) => (bytes / 1_024).toFixed(1),
};
