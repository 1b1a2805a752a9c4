import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { run } from './actions.ts';
import { type Answer, get, put, toPath } from './api.ts';
import { type NamespaceOfGame, scopeOf, versionName } from './namespaces.ts';
import { callApi } from './session.ts';
import { useUnmountSignal } from './unmount-signal.ts';

const NAMESPACE = '/cloud/games/{game_id}/namespaces/{namespace_id}';
const VERSION = '/cloud/games/{game_id}/namespaces/{namespace_id}/version';
const HISTORY = '/cloud/games/{game_id}/namespaces/{namespace_id}/version-history';

/** A version that a namespace had, and since when. */
export type Deployment = Answer<typeof HISTORY, 'get'>['versions'][number];

/** The versions that a namespace has had. Empty until they are read. */
interface DeploymentHistory {
  /** The latest first. */
  deployments: Deployment[];
  error?: Error;
}

/** Puts a namespace on a version, and offers to undo it. */
export async function deploy(target: NamespaceOfGame, version_id: string): Promise<void> {
  const { game, namespace } = target;
  const { version_id: before, name_id } = namespace;
  const move = (id: string) => () => put(VERSION, scopeOf(target), { version_id: id });
  const done = `${name_id}: ${versionName(game, before)} → ${versionName(game, version_id)}. Running lobbies go on.`;
  const undo = async () => {
    // Not `get`, which repeats until it is answered: an action fails instead.
    const now = await callApi<Answer<typeof NAMESPACE, 'get'>>('GET', toPath(NAMESPACE, scopeOf(target)));
    if (now.namespace.version_id !== version_id) {
      throw new Error(`${name_id} has another version by now. Nothing was undone.`);
    }
    await move(before)();
  };
  await run(done, move(version_id), { act: undo, done: `${name_id} is back on ${versionName(game, before)}.` });
}

/** Returns the version that was live before the present one. */
export function versionBefore({ namespace }: NamespaceOfGame, deployments: Deployment[]): string | undefined {
  return deployments.find(({ version_id }) => version_id !== namespace.version_id)?.version_id;
}

/** Reads the versions that a namespace has had, again after each deploy; none while the namespace is not known. */
export function useDeployments(target: NamespaceOfGame | undefined): DeploymentHistory {
  const known = useMemo(() => signal<DeploymentHistory>({ deployments: [] }), [target?.namespace.namespace_id]);
  const live = target && `${target.namespace.namespace_id} ${target.namespace.version_id}`;
  const unmounted = useUnmountSignal(live);
  useEffect(() => {
    if (!target) return;
    const showUnlessLeft = (next: DeploymentHistory) => {
      if (!unmounted.aborted) known.value = next;
    };
    void get(HISTORY, scopeOf(target), {}, unmounted).then(
      ({ versions }) => showUnlessLeft({ deployments: versions }),
      (error: Error) => showUnlessLeft({ ...known.value, error }),
    );
  }, [live]);
  return known.value;
}
