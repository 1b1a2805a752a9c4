import { isRecord } from '../is-record.ts';

/** What the service knows of the names that a configuration may have. */
interface Known {
  regions: readonly string[];
  tiers: readonly string[];
}

/** The keys of numbers of players, by the names that problems have for them. */
const PLAYER_COUNTS: Record<string, string> = {
  'max-players-normal': 'max_players',
  'max-players-direct': 'max_players_direct',
  'max-players-party': 'max_players_party',
};
const MODE = /^config\.matchmaker\.game-modes\.\*(.+?)\*\.(.+)$/;
const PLAYER_COUNT = /^player-counts\.([a-z-]+)\.too-(high|low)$/;
const REGION = /^regions\.(\d+)\.invalid$/;
const TIER = /^regions\.\*(.+)\*\.tier-name-id-invalid$/;

/** Returns whether a problem is about the name of a tier, of which the service has a list. */
export function isAboutTier(problem: string): boolean {
  return problem.endsWith('.tier-name-id-invalid');
}

/**
 * Returns what a service finds wrong with a configuration: in the words of its file for the likeliest problems, and for others
 * as the service names them.
 */
export function describeProblems(problems: readonly string[], matchmaker: unknown, known: Known): string {
  return [...new Set(problems.map((problem) => describe(problem, matchmaker, known)))].join('; ');
}

function describe(problem: string, matchmaker: unknown, { regions, tiers }: Known): string {
  const [, mode = '', rest = ''] = MODE.exec(problem) ?? [];
  const of_mode = `of the game mode ${mode}`;
  const [, count] = PLAYER_COUNT.exec(rest) ?? [];
  if (count !== undefined) return `${PLAYER_COUNTS[count] ?? count} ${of_mode} is out of range`;
  const [, index] = REGION.exec(rest) ?? [];
  if (index !== undefined) {
    const name = regionNames(matchmaker, mode)[Number(index)] ?? index;
    return `the service has no region "${name}" (in regions ${of_mode}); it has: ${regions.join(', ')}`;
  }
  const [, region] = TIER.exec(rest) ?? [];
  if (region !== undefined) {
    return `the tier ${of_mode} in the region ${region} is unknown; the tiers are: ${tiers.join(', ')}`;
  }
  return problem;
}

/** Returns the regions that a game mode names, itself or by the matchmaker, in the order of the file. */
function regionNames(matchmaker: unknown, mode: string): string[] {
  const modes = isRecord(matchmaker) && isRecord(matchmaker.game_modes) ? matchmaker.game_modes : {};
  const own = isRecord(modes[mode]) ? modes[mode].regions : undefined;
  const regions = own ?? (isRecord(matchmaker) ? matchmaker.regions : undefined);
  return isRecord(regions) ? Object.keys(regions) : [];
}
