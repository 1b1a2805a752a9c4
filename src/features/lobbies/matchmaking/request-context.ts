import type { Patience } from '../../../platform/http/time-limits.ts';

/** Who asks, besides what he asks. */
export interface Asking {
  address: string;
  /** The header of that name, if it is a page that asks. */
  readOrigin(): string | undefined;
  /** The header of that name; null without it. */
  readUserAgent(): string | null;
  /** The request, by which its receipt is found. */
  ray_id: string;
  /** How long he waits for a lobby to be ready. */
  patience: Patience;
}

/** Ids for players who come together. */
export function nameMembers({ players = 1 }: { players?: number | undefined }): {
  player_id: string;
  others: string[];
} {
  return { player_id: Bun.randomUUIDv7(), others: Array.from({ length: players - 1 }, () => Bun.randomUUIDv7()) };
}

/** What a request says, without what it leaves out. */
export function given<Members extends object>(
  members: Members,
): Partial<{ [Name in keyof Members]: NonNullable<Members[Name]> }> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

/** For how many seats are wanted. */
export const countOf = ({ players = 1 }: { players?: number | undefined }) => ({ players });
