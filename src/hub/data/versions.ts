import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get } from './api.ts';
import { useShown } from './shown.ts';

export type Version = Answer<'/cloud/games/{game_id}/versions/{version_id}', 'get'>['version'];
type GameModes = NonNullable<NonNullable<Version['config']['matchmaker']>['game_modes']>;
export type GameMode = GameModes[string];

const VERSION = '/cloud/games/{game_id}/versions/{version_id}';

/** Versions that were read. A version never changes. */
const known = new Map<string, Version>();

/** Returns a version once it is read, or why it cannot be. */
export function useVersion(game_id: string, version_id: string): Version | Error | undefined {
  const version = useMemo(() => signal<Version | Error | undefined>(known.get(version_id)), [version_id]);
  const shown = useShown(version_id);
  useEffect(() => {
    if (version.value !== undefined) return;
    void get(VERSION, { game_id, version_id }, {}, shown).then(
      ({ version: read }) => {
        known.set(version_id, read);
        version.value = read;
      },
      (error: Error) => {
        version.value = error;
      },
    );
  }, [version_id]);
  return version.value;
}

/** Returns the game modes of a version by name; none of one that is not read. */
export function gameModesOf(version: Version | Error | undefined): Record<string, GameMode> {
  return version instanceof Error ? {} : (version?.config.matchmaker?.game_modes ?? {});
}
