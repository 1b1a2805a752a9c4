import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';

/** The facts about a request that a use case needs besides its body. */
export interface RequestContext {
  address: string;
  /** Returns the header Origin; undefined if no page sent the request. */
  readOrigin(): string | undefined;
  /** Returns the header User-Agent; null if there is none. */
  readUserAgent(): string | null;
  /** The id of the request and of its receipt. */
  ray_id: string;
  deadline: RequestDeadline;
}

/** Returns new ids for the players of a request. */
export function createPlayerIds({ players = 1 }: { players?: number | undefined }): {
  player_id: string;
  others: string[];
} {
  return { player_id: Bun.randomUUIDv7(), others: Array.from({ length: players - 1 }, () => Bun.randomUUIDv7()) };
}
