import { forEachUntilFailure } from '../../shared/at-once.ts';
import { ago, shortId } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { Session, type SharedOptions } from '../session.ts';

interface Player {
  player_id: string;
  create_ts: string;
  connect_ts?: string;
}

const LOBBIES_AT_ONCE = 8;

/** Lists the players with a seat in a running lobby of a namespace. */
export async function listPlayers(options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const { lobbies } = await session.api.get<{ lobbies: { lobby_id: string }[] }>(paths.runningLobbies(scope));
  const players: (Player & { lobby_id: string })[] = [];
  await forEachUntilFailure(lobbies, LOBBIES_AT_ONCE, async ({ lobby_id }) => {
    const { lobby } = await session.api.get<{ lobby: { players: Player[] } }>(paths.lobbyDetails(scope, lobby_id));
    players.push(...lobby.players.map((player) => ({ ...player, lobby_id })));
  });
  players.sort((one, other) => one.create_ts.localeCompare(other.create_ts));
  session.show({ players }, (output) => {
    if (players.length === 0) return output.say('No player has a seat here.');
    output.table(
      ['PLAYER', 'LOBBY', 'STATE', 'AGE'],
      players.map(({ player_id, lobby_id, connect_ts, create_ts }) => [
        shortId(player_id),
        shortId(lobby_id),
        connect_ts === undefined ? 'reserved' : 'connected',
        ago(connect_ts ?? create_ts),
      ]),
    );
  });
}
