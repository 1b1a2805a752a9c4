/** A limit and the measured figure. */
export interface Goal {
  what: string;
  limit: string;
  figure: string;
  is_met: boolean;
}

/** Returns a goal: the ratio to a peer is at least the limit. */
export function atLeast(what: string, limit: number, ratio: number): Goal {
  return { what, limit: `>= ${show.ratio(limit)}`, figure: show.ratio(ratio), is_met: ratio >= limit };
}

/** Returns a goal: the ratio to a peer is at most the limit. */
export function atMost(what: string, limit: number, ratio: number): Goal {
  return { what, limit: `<= ${show.ratio(limit)}`, figure: show.ratio(ratio), is_met: ratio <= limit };
}

/** Returns a goal: the time is at most the limit. */
export function within(what: string, limit_ms: number, milliseconds: number): Goal {
  const figure = `${milliseconds.toFixed(2)} ms`;
  return { what, limit: `<= ${limit_ms} ms`, figure, is_met: milliseconds <= limit_ms };
}

/** Prints rows below a title, with columns as wide as their cells. */
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

/** Returns the median. */
export function middleOf(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

export const show = {
  perSecond: (value: number) => Math.round(value).toLocaleString('en'),
  cores: (value: number) => value.toFixed(2),
  milliseconds: (value: number) => value.toFixed(1),
  microseconds: (seconds: number) => (seconds * 1_000_000).toFixed(1),
  ratio: (value: number) => `${value.toFixed(2)}×`,
  kibibytes: (bytes: number) => (bytes / 1_024).toFixed(1),
};
