/** A problem of a service. */
export interface Finding {
  what: string;
  /** What to do about it. */
  advice: string;
}

/** A connection or an answer that takes longer counts as missing. */
export const CONNECT_WITHIN_MS = 5_000;
