import { ago, type Output, shortId } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { pick } from '../pick.ts';
import { type Scope, Session, type SharedOptions } from '../session.ts';

interface RunningLobby {
  lobby_id: string;
  lobby_group_name_id: string;
  server_id: string;
  create_ts: string;
  is_ready: boolean;
  is_closed: boolean;
  is_outdated: boolean;
  max_players_normal: number;
  total_player_count: number;
}

interface RunningLobbies {
  lobbies: RunningLobby[];
}

/** Lists the running lobbies of a namespace. */
export async function listLobbies(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const answer = await session.api.get<RunningLobbies>(paths.runningLobbies(await session.scope()));
  session.show(answer, (output) => showLobbies(output, answer.lobbies));
}

/** Shows a lobby and its server. */
export async function showLobby(given: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { lobby, scope } = await findLobby(session, given);
  const server = await session.api.get<object>(`${paths.servers(scope)}/${lobby.server_id}`);
  const answer = { lobby, ...server };
  session.show(answer, (output) => output.record(answer));
}

/** Closes a lobby, so that no find gives a seat in it; with `--undo`, opens it again. */
export async function closeLobby(given: string, options: SharedOptions & { undo?: boolean }): Promise<void> {
  const session = await Session.open(options);
  const { lobby, scope } = await findLobby(session, given);
  const is_closed = !options.undo;
  await session.api.call('PUT', `${paths.lobby(scope, lobby.lobby_id)}/closed`, { body: { is_closed } });
  const { lobby_id } = lobby;
  const state = is_closed ? 'closed: no find gives a seat in it' : 'open again';
  session.show({ lobby_id, is_closed }, ({ say }) => say(`The lobby ${lobby_id} is ${state}.`));
}

/** Ends a lobby and its server. */
export async function deleteLobby(given: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const { lobby, scope } = await findLobby(session, given);
  await session.api.call('DELETE', paths.lobby(scope, lobby.lobby_id));
  session.show({ lobby_id: lobby.lobby_id }, ({ say }) => say(`The lobby ${lobby.lobby_id} has ended.`));
}

async function findLobby(session: Session, given: string): Promise<{ lobby: RunningLobby; scope: Scope }> {
  const scope = await session.scope();
  const { lobbies } = await session.api.get<RunningLobbies>(paths.runningLobbies(scope));
  const list_command = session.commandIn(scope, 'lobbies');
  const lobby = pick(lobbies, given, { what: 'lobby', idOf: ({ lobby_id }) => lobby_id, list_command });
  return { scope, lobby };
}

function showLobbies(output: Output, lobbies: RunningLobby[]): void {
  if (lobbies.length === 0) {
    output.say('No lobby is running. A find creates one.');
    return;
  }
  output.table(
    ['LOBBY', 'MODE', 'PLAYERS', 'STATE', 'SERVER', 'AGE'],
    lobbies.map((lobby) => [
      shortId(lobby.lobby_id),
      lobby.lobby_group_name_id,
      `${lobby.total_player_count}/${lobby.max_players_normal}`,
      stateOf(lobby),
      shortId(lobby.server_id),
      ago(lobby.create_ts),
    ]),
  );
}

function stateOf({ is_ready, is_closed, is_outdated }: RunningLobby): string {
  const state = is_ready ? (is_closed ? 'closed' : 'open') : 'starting';
  return is_outdated ? `${state}, old version` : state;
}
