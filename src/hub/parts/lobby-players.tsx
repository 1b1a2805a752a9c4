import { useAction } from '../data/actions.ts';
import { type Answer, remove } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { shortId, useNamespace } from '../data/namespaces.ts';
import { Confirm } from './confirm.tsx';
import { Json } from './json.tsx';
import { Seats } from './seats.tsx';
import { Section } from './section.tsx';
import { Table } from './table.tsx';
import { Age, Countdown } from './time.tsx';

const PLAYER = '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players/{player_id}';

export type LobbyDetails = Answer<
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}',
  'get'
>['lobby'];

/** The seats of a lobby whose players are known. */
export function LobbySeats({ lobby: { players, max_players_normal } }: { lobby: LobbyDetails }) {
  const reserved = players.filter(({ connect_ts }) => connect_ts === undefined);
  const times = reserved.flatMap(({ create_ts, seat_deadline_ts }) =>
    seat_deadline_ts === undefined ? [] : [{ from: create_ts, to: seat_deadline_ts }],
  );
  return (
    <Seats
      connected={players.length - reserved.length}
      reserved={reserved.length}
      max={max_players_normal}
      times={times}
    />
  );
}

/** The state that a lobby has set, if it has. */
export function LobbyState({ of }: { of: unknown }) {
  if (of === undefined) return null;
  return (
    <Section title="State">
      <Json of={of} label="State of the lobby" />
    </Section>
  );
}

/** The players who have a seat in a lobby. */
export function LobbyPlayers({ lobby }: { lobby: LobbyDetails }) {
  if (lobby.stop_ts !== undefined) return null;
  const { players } = lobby;
  return (
    <Section title="Players">
      {players.length === 0 ? (
        <p class="quiet">All seats are free.</p>
      ) : (
        <Table heads={['Player', 'Has the seat since', 'Status', ...(may_act.value ? ['.Actions'] : [])]}>
          {players.map(({ player_id, create_ts, connect_ts, seat_deadline_ts }) => (
            <tr key={player_id}>
              <td class="mono">{shortId(player_id)}</td>
              <td>
                <Age of={create_ts} />
              </td>
              <td>
                {connect_ts !== undefined ? (
                  <span class="badge good">connected</span>
                ) : (
                  <span class="badge warn">
                    reserved{seat_deadline_ts !== undefined && <Countdown to={seat_deadline_ts} />}
                  </span>
                )}
              </td>
              {may_act.value && (
                <td>
                  <Kick lobby_id={lobby.lobby_id} player_id={player_id} />
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

/** Kicks a player, which frees the seat. */
function Kick({ lobby_id, player_id }: { lobby_id: string; player_id: string }) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const name = shortId(player_id);
  const kick = () =>
    act(`Player ${name} was kicked.`, () => remove(PLAYER, { game_id: scope.game_id, lobby_id, player_id }));
  return (
    <Confirm
      label="Kick"
      subject={`player ${name}`}
      question={`Kick player ${name}?`}
      is_disabled={is_busy.value}
      class="small danger"
      onConfirm={() => void kick()}
    >
      <p>
        The seat is free at once, and the player cannot connect with it again. A connection through the gateway is
        closed if its port has <code>presence: gateway</code>; otherwise the game server has to close it itself.
      </p>
    </Confirm>
  );
}
