import type { Api } from './api.ts';
import type { TestGame } from './game.ts';

/** Somebody with a token of his own. */
export interface Person {
  identity_id: string;
  token: string;
}

/** A guest of a game, as its client makes one. */
export async function makeGuest(api: Api, { public_token }: Pick<TestGame, 'public_token'>): Promise<Person> {
  const { identity, identity_token } = await api.ok('POST', '/identity/identities', { token: public_token });
  return { identity_id: identity.identity_id, token: identity_token };
}
