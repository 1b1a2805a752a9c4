import { isRecord } from '../is-record.ts';
import type { Project } from './project-file.ts';

interface Regions {
  /** Names of the service's regions. */
  known: readonly string[];
  /** Names of the service's regions by those of the configuration. */
  renamed: Readonly<Record<string, string>>;
}

/**
 * Returns a configuration with only the regions that a service has, and the names of the others. A configuration without
 * regions means all.
 */
export function fitRegions(
  config: Project['config'],
  regions: Regions,
): { config: Project['config']; foreign: string[] } {
  const { matchmaker } = config;
  if (!matchmaker) return { config, foreign: [] };
  const foreign = new Set<string>();
  const fit = (value: Record<string, unknown>): Record<string, unknown> => {
    const { regions: given, ...others } = value;
    if (!isRecord(given)) return value;
    const kept: Record<string, unknown> = {};
    for (const [name, region] of Object.entries(given)) {
      const here = regions.renamed[name] ?? name;
      if (regions.known.includes(here) || regions.renamed[name] !== undefined) kept[here] ??= region;
      else foreign.add(name);
    }
    return Object.keys(kept).length > 0 ? { ...others, regions: kept } : others;
  };
  const fitted = fit(matchmaker);
  if (isRecord(fitted.game_modes)) {
    fitted.game_modes = Object.fromEntries(
      Object.entries(fitted.game_modes).map(([name, mode]) => [name, isRecord(mode) ? fit(mode) : mode]),
    );
  }
  return { config: { ...config, matchmaker: fitted }, foreign: [...foreign] };
}

/** Returns whether a configuration names regions, for all game modes or for one. */
export function hasRegions(matchmaker: Record<string, unknown> = {}): boolean {
  const game_modes = isRecord(matchmaker.game_modes) ? Object.values(matchmaker.game_modes) : [];
  return [matchmaker, ...game_modes].some((one) => isRecord(one) && isRecord(one.regions));
}
