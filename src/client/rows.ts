import type { Watched } from './wire.ts';

/** A body of a list: all its rows, or the changes since the body before. */
export interface RowsBody<Row extends object = Record<string, unknown>> extends Watched {
  /** The member of a row that identifies it. */
  row_id: string;
  rows?: Row[];
  changes?: { removed: string[]; placed: { at: number; row: Row }[] };
}

/** A body of a list with all its rows. */
export type WholeBody<Body extends RowsBody<object>> = Omit<Body, 'rows' | 'changes'> & {
  rows: NonNullable<Body['rows']>;
};

/**
 * Returns the rows of a list after a body: those of the body, or the rows before it with its changes applied. Rows that did
 * not change are the same objects.
 */
export function applyRows<Row extends object>(before: readonly Row[], body: RowsBody<Row>): Row[] {
  const { row_id, changes } = body;
  if (!changes) return body.rows ?? [];
  const idOf = (row: Row): unknown => Reflect.get(row, row_id);
  const gone = new Set<unknown>([...changes.removed, ...changes.placed.map(({ row }) => idOf(row))]);
  const rows = before.filter((row) => !gone.has(idOf(row)));
  for (const { at, row } of changes.placed) rows.splice(at, 0, row);
  return rows;
}
