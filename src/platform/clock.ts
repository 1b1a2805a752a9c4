/** The current time. Code that depends on it takes a clock, so that tests can set it. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** How far the clocks of processes of one service may differ. */
export const CLOCK_SKEW_MAX_MS = 60_000;

/** Returns the moment `distance_ms` after another one, or before it if negative. */
export function after(moment: Date, distance_ms: number): Date {
  return new Date(moment.getTime() + distance_ms);
}
