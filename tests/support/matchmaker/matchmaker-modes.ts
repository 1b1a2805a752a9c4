import { OWN_REGION } from './matchmaker.ts';
import type { Maxima } from './matchmaking-rules.ts';

type Publicity = 'public' | 'private';

/** The settings of a game mode that decide about seats. */
interface Mode {
  maxima: Maxima;
  regions: string[];
  is_taggable: boolean;
  is_joinable: boolean;
  /** The kinds of lobbies that players may create. */
  creates: Publicity[];
  idle_max: number;
}

export const REGIONS = [OWN_REGION, 'far'];
const open = { regions: REGIONS, is_taggable: true, is_joinable: true, creates: ['public', 'private'] as Publicity[] };

/** The two versions that a namespace moves between, by the names of their game modes. */
export const VERSIONS: Record<'old' | 'new', Record<string, Mode>> = {
  old: {
    wide: { ...open, maxima: { normal: 2, direct: 3, party: 4 }, idle_max: 0 },
    small: { ...open, maxima: { normal: 3, direct: 4, party: 2 }, regions: [OWN_REGION], idle_max: 1, creates: [] },
  },
  new: {
    wide: { ...open, maxima: { normal: 4, direct: 2, party: 3 }, idle_max: 1, creates: ['private'] },
    small: { ...open, maxima: { normal: 2, direct: 2, party: 2 }, idle_max: 0, is_taggable: false, is_joinable: false },
  },
};
export type VersionName = keyof typeof VERSIONS;

export function modeOf(version: string, game_mode: string): Mode | undefined {
  const versions: Record<string, Record<string, Mode>> = VERSIONS;
  return versions[version]?.[game_mode];
}
