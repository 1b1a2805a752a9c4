import { EXIT, Failure } from '../../terminal/failure.ts';
import type { Scope, Session } from '../session.ts';

/** The namespaces that a new game has. */
const FIRST_NAMESPACES = ['prod', 'staging'];

interface Listed {
  games: { game_id: string; name_id: string; display_name: string }[];
  groups: { group_id: string }[];
}

/** Returns the game and namespace of a session; undefined if the game is missing. Throws as `ensureGame` does. */
export async function findScope(session: Session): Promise<Scope | undefined> {
  const listed = await list(session);
  const missing = missingGame(session, listed);
  if (missing === undefined) return await session.scope();
  await refuseTokenOfGame(session, listed, missing);
  return undefined;
}

/**
 * Returns the game and namespace of a session. Creates a missing game, in the caller's group, with its first namespaces.
 * Throws a Failure if the token is of another game.
 */
export async function ensureGame(session: Session): Promise<Scope> {
  const listed = await list(session);
  const display_name = missingGame(session, listed);
  if (display_name !== undefined) {
    await refuseTokenOfGame(session, listed, display_name);
    const { namespace_name } = session;
    if (!FIRST_NAMESPACES.includes(namespace_name)) {
      const words = `The game ${display_name} would be new, with the namespaces ${FIRST_NAMESPACES.join(' and ')}, not "${namespace_name}"`;
      throw new Failure(`${words}: deploy to one of them first.`, EXIT.not_found);
    }
    const developer_group_id = listed.groups[0]?.group_id ?? (await createGroup(session));
    // Another deploy may create it at the same time.
    const body = { display_name, developer_group_id, if_missing: true };
    await session.api.call('POST', '/cloud/games', { body });
    session.output.say(`game     ${display_name} is new`);
  }
  return await session.scope();
}

const list = ({ api }: Session) => api.get<Listed>('/cloud/games');

/** Returns the name of the session's game if that game is missing. */
function missingGame({ game_name }: Session, { games }: Listed): string | undefined {
  const is_there = games.some(
    ({ game_id, name_id, display_name }) =>
      game_name === undefined || [game_id, name_id, display_name].includes(game_name),
  );
  return is_there ? undefined : game_name;
}

/** Throws a Failure if the session's token is of one game, and so can neither see nor create another. */
async function refuseTokenOfGame(session: Session, { games }: Listed, wanted: string): Promise<void> {
  const own = games.map(({ name_id }) => name_id).join(', ');
  const with_token = session.token_source === 'option' ? '' : ' --token -';
  const create = session.commandFor({ name_id: wanted }, `deploy ${session.namespace_name}${with_token}`);
  const sentence = await session.describeTokenOfGame(wanted, own);
  if (sentence === undefined) return;
  throw new Failure(`${sentence}. To create it, deploy once with the token of a person: ${create}`, EXIT.not_logged_in);
}

async function createGroup(session: Session): Promise<string> {
  const body = { display_name: 'My studio' };
  const { group_id } = await session.api.call<{ group_id?: string }>('POST', '/group/groups', { body });
  if (group_id === undefined) throw new Failure('The service created no group for the game. Try again.');
  // Another deploy may have created one at the same time; both use the oldest.
  return (await list(session)).groups[0]?.group_id ?? group_id;
}
