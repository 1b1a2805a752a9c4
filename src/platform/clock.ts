/** The time of day. Code that depends on the time takes a clock, so that tests can move it. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** Returns the moment this many milliseconds after another; before it, if negative. */
export function after(moment: Date, distance_ms: number): Date {
  return new Date(moment.getTime() + distance_ms);
}
