import { computed, signal } from '@preact/signals';
import { get } from './api.ts';

/** For whom the page acts: a person, a tool of one game, or a bearer that only looks. */
export type Bearer =
  | { is: 'person'; identity_id: string; name: string; is_administrator: boolean }
  | { is: 'game'; game_id: string }
  | { is: 'viewer' };

export const bearer = signal<Bearer | undefined>(undefined);

/** Whether the bearer may change anything. Until that is known, the page shows no actions. */
export const may_act = computed(() => bearer.value !== undefined && bearer.value.is !== 'viewer');
export const is_administrator = computed(() => bearer.value?.is === 'person' && bearer.value.is_administrator);

/** Reads for whom the page acts. */
export async function readBearer(): Promise<void> {
  bearer.value = await identify().catch((): Bearer => ({ is: 'viewer' }));
}

async function identify(): Promise<Bearer> {
  const { agent } = await get('/cloud/auth/inspect', {});
  if ('game_cloud' in agent) return { is: 'game', game_id: agent.game_cloud.game_id };
  const { identity } = await get('/identity/identities/self/profile', {});
  const { identity_id, display_name: name, is_admin: is_administrator } = identity;
  return { is: 'person', identity_id, name, is_administrator };
}
