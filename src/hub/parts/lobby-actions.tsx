import { useAction } from '../data/actions.ts';
import { put, remove } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import type { LobbyRow } from '../data/lobbies.ts';
import { shortId, useNamespace } from '../data/namespaces.ts';
import { Confirm } from './confirm.tsx';

/** What can be done with a running lobby. */
export function LobbyActions({ lobby }: { lobby: Pick<LobbyRow, 'lobby_id' | 'is_closed' | 'player_count'> }) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const { lobby_id, is_closed, player_count } = lobby;
  const parameters = { game_id: scope.game_id, lobby_id };
  const name = shortId(lobby_id);
  const setClosed = () =>
    act(is_closed ? `Lobby ${name} is open again.` : `Lobby ${name} is closed to new players.`, () =>
      put('/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/closed', parameters, { is_closed: !is_closed }),
    );
  const end = () =>
    act(`Lobby ${name} has ended.`, () => remove('/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}', parameters));
  if (!may_act.value) return null;
  return (
    <span class="actions">
      <button
        type="button"
        class="small"
        aria-label={`${is_closed ? 'Reopen' : 'Close'} lobby ${name}`}
        disabled={is_busy.value}
        onClick={() => void setClosed()}
      >
        {is_closed ? 'Reopen' : 'Close'}
      </button>
      <Confirm
        label="End"
        subject={`lobby ${name}`}
        question={`End lobby ${name}?`}
        is_disabled={is_busy.value}
        class="small danger"
        onConfirm={() => void end()}
      >
        <p>{describeEnd(player_count)}</p>
      </Confirm>
    </span>
  );
}

/** Returns what else the end of a lobby with that many players ends. */
function describeEnd(player_count: number): string {
  if (player_count === 0) return 'Its server ends, too.';
  const players = player_count === 1 ? 'player loses the seat' : `${player_count} players lose their seats`;
  return `Its server ends, too, and its ${players}.`;
}
