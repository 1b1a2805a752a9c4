import { type Answer, toPath } from './api.ts';
import { tokenFor } from './players.ts';
import { hrefOf, setFilter } from './router.ts';
import { callApi, callApiAs } from './session.ts';

const BOOTSTRAP = '/cloud/bootstrap';
const GAMES = '/cloud/games';
const GAME = '/cloud/games/{game_id}';
const SET_UP = '/identity/identities';
const PROFILE = '/identity/identities/self/profile';
/** Before the public token by which someone without a token becomes a new person. It reaches no log of a server. */
export const NEW_PERSON = '#new=';

/**
 * Prepares the links of invitations to a group, before one is made. Returns the function that makes one of a code. With the
 * public token of a game, it also leads people in who have no token yet.
 */
export async function prepareInvitationLinks(group_id: string): Promise<(code: string) => string> {
  // Where this page is open may lead to nothing elsewhere. Not `get`, which repeats until it is answered.
  const { origins } = await callApi<Answer<typeof BOOTSTRAP, 'get'>>('GET', BOOTSTRAP);
  const public_token = await publicTokenOf(group_id);
  const ending = public_token === undefined ? '' : `${NEW_PERSON}${public_token}`;
  return (code) => `${origins.hub}${hrefOf({}, { invite: code })}${ending}`;
}

/** Returns a public token of a game of the group; undefined if the group has none. */
async function publicTokenOf(group_id: string): Promise<string | undefined> {
  const { games } = await callApi<Answer<typeof GAMES, 'get'>>('GET', GAMES);
  const game_id = games.find(({ developer }) => developer.group_id === group_id)?.game_id;
  if (game_id === undefined) return undefined;
  const { game } = await callApi<Answer<typeof GAME, 'get'>>('GET', toPath(GAME, { game_id }));
  const [namespace] = game.namespaces;
  return namespace && (await tokenFor({ game_id, namespace_id: namespace.namespace_id }));
}

/** Returns the public token of the invitation in the address; undefined if it has none. */
export function readPublicToken(): string | undefined {
  return location.hash.startsWith(NEW_PERSON) ? location.hash.slice(NEW_PERSON.length) : undefined;
}

/** Removes the invitation from the address. */
export function forgetInvitation(): void {
  history.replaceState(history.state, '', location.pathname + location.search);
  setFilter('invite', '');
}

/** The token of a person, and until when it is accepted. */
export type NewPerson = Pick<Answer<typeof SET_UP, 'post'>, 'identity_token' | 'identity_token_expire_ts'>;

/** Makes a person without a name of their own. */
export async function createPerson(public_token: string): Promise<NewPerson> {
  return await callApiAs(public_token, 'POST', SET_UP, {});
}

export async function renamePerson({ identity_token }: NewPerson, display_name: string): Promise<void> {
  await callApiAs(identity_token, 'POST', PROFILE, { display_name });
}
