import type { Api } from './api.ts';
import type { TestGame } from './game.ts';
import type { TestService } from './service.ts';

/** An identity with its token. */
export interface Person {
  identity_id: string;
  token: string;
}

/** Creates a guest of a game, as the game's client does. */
export async function makeGuest(api: Api, { public_token }: Pick<TestGame, 'public_token'>): Promise<Person> {
  const { identity, identity_token } = await api.ok('POST', '/identity/identities', { token: public_token });
  return { identity_id: identity.identity_id, token: identity_token };
}

/** Makes a guest of a game and a member of its group. */
export async function makeMember(
  { api, administrator_token: token }: Pick<TestService, 'api' | 'administrator_token'>,
  game: TestGame,
): Promise<Person> {
  const member = await makeGuest(api, game);
  const { code } = await api.ok('POST', `/group/groups/${game.group_id}/invites`, { token, body: {} });
  await api.ok('POST', `/group/invites/${code}/consume`, { token: member.token });
  return member;
}
