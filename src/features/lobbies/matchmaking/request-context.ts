import type { Patience } from '../../../platform/http/time-limits.ts';

/** What a use case needs to know of a request besides its body. */
export interface RequestContext {
  address: string;
  /** Returns the header of that name; undefined when no page sent the request. */
  readOrigin(): string | undefined;
  /** Returns the header of that name; null without it. */
  readUserAgent(): string | null;
  /** Names the request, and its receipt. */
  ray_id: string;
  patience: Patience;
}

/** Returns new ids for the players of a request. */
export function newPlayers({ players = 1 }: { players?: number | undefined }): { player_id: string; others: string[] } {
  return { player_id: Bun.randomUUIDv7(), others: Array.from({ length: players - 1 }, () => Bun.randomUUIDv7()) };
}
