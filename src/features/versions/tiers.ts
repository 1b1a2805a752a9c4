/** The resources of a server. */
export interface Tier {
  /** Thousandths of a core. */
  cpu: number;
  /** MiB. */
  memory: number;
}

/** The tiers of the reference API, by name id. Memory of basic-1d16 is half of the next one's. */
export const TIERS: ReadonlyMap<string, Tier> = new Map([
  ['basic-1d16', { cpu: 62, memory: 114 }],
  ['basic-1d8', { cpu: 125, memory: 229 }],
  ['basic-1d4', { cpu: 250, memory: 459 }],
  ['basic-1d2', { cpu: 500, memory: 919 }],
  ['basic-1d1', { cpu: 1_000, memory: 1_838 }],
  ['basic-2d1', { cpu: 2_000, memory: 3_676 }],
  ['basic-4d1', { cpu: 4_000, memory: 7_352 }],
]);

export const DEFAULT_TIER = 'basic-1d1';
