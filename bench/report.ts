/** What was to be reached, and what was. */
export interface Goal {
  what: string;
  limit: string;
  figure: string;
  is_met: boolean;
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

/** The middle one. */
export function middleOf(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

export const show = {
  perSecond: (value: number) => Math.round(value).toLocaleString('en'),
  cores: (value: number) => value.toFixed(2),
  milliseconds: (value: number) => value.toFixed(1),
  microseconds: (seconds: number) => (seconds * 1_000_000).toFixed(1),
  ratio: (value: number) => `${value.toFixed(2)}×`,
  kilobytes: (bytes: number) => (bytes / 1_024).toFixed(1),
};
