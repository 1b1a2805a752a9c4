/** The time of day. Everything that decides by time takes a clock, so that tests can move it. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** A moment this many milliseconds away from another; negative goes back. */
export function after(moment: Date, distance_ms: number): Date {
  return new Date(moment.getTime() + distance_ms);
}
