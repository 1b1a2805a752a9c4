import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get } from './api.ts';

export type Version = Answer<'/cloud/games/{game_id}/versions/{version_id}', 'get'>['version'];
type GameModes = NonNullable<NonNullable<Version['config']['matchmaker']>['game_modes']>;
export type GameMode = GameModes[string];

/** Versions that were read or are being read. A version never changes. */
const known = new Map<string, Promise<Version>>();

export function readVersion(game_id: string, version_id: string): Promise<Version> {
  const before = known.get(version_id);
  if (before) return before;
  const read = get('/cloud/games/{game_id}/versions/{version_id}', { game_id, version_id }).then(
    ({ version }) => version,
  );
  read.catch(() => known.delete(version_id));
  known.set(version_id, read);
  return read;
}

/** Returns a version once it is read; null if it cannot be. */
export function useVersion(game_id: string, version_id: string): Version | null | undefined {
  const version = useMemo(() => signal<Version | null | undefined>(undefined), [version_id]);
  useEffect(() => {
    void readVersion(game_id, version_id)
      .catch(() => null)
      .then((read) => {
        version.value = read;
      });
  }, [version_id]);
  return version.value;
}

/** Returns the game modes of a version by name. */
export function gameModesOf(version: Version | null | undefined): Record<string, GameMode> {
  return version?.config.matchmaker?.game_modes ?? {};
}
