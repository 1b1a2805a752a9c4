import { type Signal, signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { type Answer, get } from './api.ts';
import { useNamespace } from './namespaces.ts';
import { READ_AGAIN_AFTER_MS } from './reading.ts';
import { isFailureOfService } from './request.ts';
import { useUnmountSignal } from './unmount-signal.ts';

export type Version = Answer<'/cloud/games/{game_id}/versions/{version_id}', 'get'>['version'];
type GameModes = NonNullable<NonNullable<Version['config']['matchmaker']>['game_modes']>;
export type GameMode = GameModes[string];

const VERSION = '/cloud/games/{game_id}/versions/{version_id}';

/** Versions that were read. A version never changes. */
const known = new Map<string, Version>();

/** Returns a version once it is read, or why it cannot be. */
export function useVersion(game_id: string, version_id: string): Version | Error | undefined {
  const version = useMemo(() => signal<Version | Error | undefined>(known.get(version_id)), [version_id]);
  const unmounted = useUnmountSignal(version_id);
  useEffect(() => {
    if (version.value !== undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      const answer = await get(VERSION, { game_id, version_id }, {}, unmounted).catch((error: Error) => error);
      if (unmounted.aborted) return;
      if (!(answer instanceof Error)) known.set(version_id, answer.version);
      else if (isFailureOfService(answer)) timer = setTimeout(() => void read(), READ_AGAIN_AFTER_MS);
      version.value = answer instanceof Error ? answer : answer.version;
    };
    void read();
    return () => clearTimeout(timer);
  }, [version_id]);
  return version.value;
}

/** Returns the live version of the namespace. After a deploy, that is the one before until the new one is read. */
export function useLiveVersion(): Version | Error | undefined {
  const { game, namespace } = useNamespace();
  const version = useVersion(game.game_id, namespace.version_id);
  const latest = useRef(version);
  latest.current = version ?? latest.current;
  return latest.current;
}

/** Returns the game modes of a version by name; none of one that is not read. */
export function gameModesOf(version: Version | Error | undefined): Record<string, GameMode> {
  return version instanceof Error ? {} : (version?.config.matchmaker?.game_modes ?? {});
}

/** Returns whether a version has secrets of its own. The service shows them as empty texts. */
export function hasSecrets({ matchmaker }: Version['config']): boolean {
  const { captcha, game_modes = {} } = matchmaker ?? {};
  const keys = [captcha?.hcaptcha, captcha?.turnstile, ...Object.values(captcha?.turnstile?.domains ?? {})];
  const actions = Object.values(game_modes).flatMap((mode) => Object.values(mode.actions ?? {}));
  const verifications = actions.flatMap((action) => [action.verification_config, action.verification]);
  return keys.some((one) => one?.secret_key === '') || verifications.some((one) => one?.secret === '');
}

/** Returns the name of a game mode that a form chooses; the first one if that which was chosen has gone. */
export function useGameMode(modes: Record<string, GameMode>): Signal<string> {
  const [first = ''] = Object.keys(modes);
  const mode = useSignal(first);
  useEffect(() => {
    if (modes[mode.value] === undefined) mode.value = first;
  }, [modes]);
  return mode;
}
