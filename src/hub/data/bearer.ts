import { computed, signal } from '@preact/signals';
import { type Answer, get } from './api.ts';
import { state, watcher } from './session.ts';

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

/** Reads for whom the page acts, and watches that person's profile, also on pages that watch nothing else. */
export async function readBearer(): Promise<void> {
  try {
    const { agent } = await get('/cloud/auth/inspect', {});
    if ('game_cloud' in agent) bearer.value = { is: 'game', game_id: agent.game_cloud.game_id };
    else if (state.value.is === 'in') watchPerson();
  } catch {
    bearer.value = VIEWER;
  }
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
    },
  );
}
