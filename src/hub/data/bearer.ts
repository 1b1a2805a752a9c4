import { computed, signal } from '@preact/signals';
import type { Answer } from './api.ts';
import { isFailureOfService, untilAnswered } from './request.ts';
import { callApi, watcher } from './session.ts';

/** For whom the page acts: a person, a tool of one game, or a bearer that only looks. */
export type Bearer =
  | { is: 'person'; identity_id: string; name: string; is_administrator: boolean }
  | { is: 'game'; game_id: string }
  | { is: 'viewer' };

const PROFILE = '/identity/identities/self/profile';
const VIEWER: Bearer = { is: 'viewer' };

type Profile = Answer<typeof PROFILE, 'get'>;

export const bearer = signal<Bearer | undefined>(undefined);

/** Whether the bearer may change anything. Until that is known, the page shows no actions. */
export const may_act = computed(() => bearer.value !== undefined && bearer.value.is !== 'viewer');
export const is_administrator = computed(() => bearer.value?.is === 'person' && bearer.value.is_administrator);

/**
 * Reads for whom the page acts, and watches that person's profile, also on pages that watch nothing else. Ends with the
 * session.
 */
export async function readBearer(session: AbortSignal): Promise<void> {
  const read = () => callApi<Answer<'/cloud/auth/inspect', 'get'>>('GET', '/cloud/auth/inspect');
  const agent = await untilAnswered(read, { until: session, repeats: isFailureOfService }).then(
    (answer) => answer.agent,
    () => undefined,
  );
  if (session.aborted) return;
  if (agent === undefined) bearer.value = VIEWER;
  else if ('game_cloud' in agent) bearer.value = { is: 'game', game_id: agent.game_cloud.game_id };
  else watchPerson();
}

function watchPerson(): void {
  watcher().watch<Profile>(
    PROFILE,
    ({ identity: { identity_id, display_name: name, is_admin: is_administrator } }) => {
      bearer.value = { is: 'person', identity_id, name, is_administrator };
    },
    {
      onError: () => {
        bearer.value = VIEWER;
      },
      // What the page itself watches says why it waits.
      onDelayed: () => {},
    },
  );
}
