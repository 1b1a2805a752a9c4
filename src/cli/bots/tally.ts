/** What happened to the bots, counted. */
export interface Tally {
  /** The time of each find that got a seat. */
  find_ms: number[];
  connected: number;
  /** Seats in lobbies without a port for WebSockets, to which no bot connects. */
  without_port: number;
  /** Refused finds by the code of the error, with the ray id of the last. */
  refused: Map<string, { count: number; ray_id: string | undefined }>;
  /** How many times something happened that must not, by its description. */
  faults: Map<string, number>;
}

export const createTally = (): Tally => ({
  find_ms: [],
  connected: 0,
  without_port: 0,
  refused: new Map(),
  faults: new Map(),
});

export function countRefusal({ refused }: Tally, code: string, ray_id: string | undefined): void {
  refused.set(code, { count: (refused.get(code)?.count ?? 0) + 1, ray_id });
}

export function countFault({ faults }: Tally, what: string): void {
  faults.set(what, (faults.get(what) ?? 0) + 1);
}

/** Returns the value that a share of the values do not exceed: 0.95 for the 95th percentile. Undefined for no values. */
export function percentile(values: number[], share: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** Returns how many times something happened that must not. */
export function countFaults({ faults }: Tally): number {
  return [...faults.values()].reduce((sum, count) => sum + count, 0);
}
