/** A row of a list that can be watched. */
export interface Row {
  /** Unique in the list. */
  id: string;
  value: object;
  /** The value as JSON. Rows with equal texts are equal. */
  text: string;
}

/** A row and its index in the list, from 0. */
export interface PlacedRow {
  at: number;
  row: object;
}

/**
 * What turns one list into another. First take out the rows whose ids are removed or in `placed`. Then insert the placed
 * rows at their indexes, in order.
 */
export interface RowChanges {
  removed: string[];
  placed: PlacedRow[];
}

export function toRow(id: string, value: object): Row {
  return { id, value, text: JSON.stringify(value) };
}

/** Returns the changes from one list to another: few, because rows that keep their order stay. */
export function compareRows(before: readonly Row[], after: readonly Row[]): RowChanges {
  const indexes = new Map(before.map(({ id }, index) => [id, index]));
  const texts = new Map(before.map(({ id, text }) => [id, text]));
  const kept = longestRisingPart(after.map(({ id, text }) => (texts.get(id) === text ? indexes.get(id) : undefined)));
  const present = new Set(after.map(({ id }) => id));
  return {
    removed: before.filter(({ id }) => !present.has(id)).map(({ id }) => id),
    placed: after.flatMap(({ value }, at) => (kept.has(at) ? [] : [{ at, row: value }])),
  };
}

/** Returns the indexes of a longest rising part of a sequence, without its undefined members. */
function longestRisingPart(sequence: (number | undefined)[]): Set<number> {
  /** The index at which the best part of each length ends: that with the lowest last member. */
  const ends: number[] = [];
  const previous = new Map<number, number | undefined>();
  for (const [index, member] of sequence.entries()) {
    if (member === undefined) continue;
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sequence[ends[middle] ?? 0] ?? 0) < member) low = middle + 1;
      else high = middle;
    }
    previous.set(index, ends[low - 1]);
    ends[low] = index;
  }
  const part = new Set<number>();
  for (let index = ends.at(-1); index !== undefined; index = previous.get(index)) part.add(index);
  return part;
}
