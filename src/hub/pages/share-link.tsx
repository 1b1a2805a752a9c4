import type { Refusal } from '../../client/wire.ts';
import { type LobbyRow, useLobbyWindow } from '../data/lobbies.ts';
import { type Scope, shortId } from '../data/namespaces.ts';
import { followLink, hrefOf, hub_path } from '../data/router.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import icon from '../icon.svg';
import { Facts } from '../parts/facts.tsx';
import { Figures } from '../parts/figures.tsx';
import { Connection } from '../parts/layout.tsx';
import { Life } from '../parts/life.tsx';
import { type LobbyDetails, LobbyPlayers, LobbySeats, LobbyState } from '../parts/lobby-players.tsx';
import { Notice } from '../parts/notice.tsx';
import { Rows } from '../parts/rows.tsx';
import { Seats } from '../parts/seats.tsx';
import { Age } from '../parts/time.tsx';

const DETAILS = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}';
const ROW_HEIGHTS = { wide: 54, narrow: 80 };

/** What a share link shows: the lobbies of a namespace, or one of them, without any action. */
export function ShareLinkPage() {
  const { game = '', namespace = '', id } = hub_path.value;
  const scope = { game_id: game, namespace_id: namespace };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: links bubble up to here, and they take the keyboard
    // biome-ignore lint/a11y/useKeyWithClickEvents: a link that is followed by the keyboard is a click, too
    <div onClick={followLink}>
      <header class="bar">
        <div class="bar-row">
          <span class="brand">
            <img src={icon} width={22} height={22} alt="" /> Muster
          </span>
          <div class="bar-end">
            <Connection />
            <span class="badge quiet">view only</span>
          </div>
        </div>
      </header>
      <main>{id === undefined ? <SharedLobbies scope={scope} /> : <SharedLobby key={id} scope={scope} id={id} />}</main>
    </div>
  );
}

/** Why a link shows nothing. What the service says of a token is for those who can log in. */
function NotShared({ error }: { error: Refusal }) {
  if (error.code === 'TOKEN_REVOKED' || error.code === 'CLAIMS_ENTITLEMENT_EXPIRED')
    return <Notice error={{ message: 'This link has expired or was revoked. Ask for a new one.' }} />;
  if (error.code.endsWith('NOT_FOUND'))
    return (
      <Notice error={{ message: 'Nothing has this address. Check that the link is complete, or ask for a new one.' }} />
    );
  return <Notice error={error} />;
}

function SharedLobbies({ scope }: { scope: Scope }) {
  const { watched, moveTo } = useLobbyWindow(scope);
  const known = watched.value;
  useTitle('Lobbies');
  if (known.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (known.is === 'refused') return <NotShared error={known.error} />;
  const { rows, from, matching, summary } = known.body;
  const figures: [string, number][] = [
    ['lobbies', summary.lobbies],
    ['players', summary.players],
    ['seats', summary.seats],
  ];
  return (
    <>
      <div class="head">
        <h1>Lobbies</h1>
        <Figures of={figures} />
      </div>
      {matching === 0 ? (
        <p class="card pad">No lobby is running. New ones appear here.</p>
      ) : (
        <Rows
          items={rows}
          from={from}
          total={matching}
          onScrolledTo={moveTo}
          keyOf={({ lobby_id }) => lobby_id}
          heights={ROW_HEIGHTS}
          label="Lobbies"
        >
          {(row) => <SharedRow scope={scope} row={row} />}
        </Rows>
      )}
    </>
  );
}

function SharedRow({ scope, row }: { scope: Scope; row: LobbyRow }) {
  const { lobby_id, game_mode_id, region_id, status, create_ts, player_count, connected_count } = row;
  // The link keeps the token, so that the page can be loaded again.
  const href = hrefOf({ game: scope.game_id, namespace: scope.namespace_id, page: 'lobbies', id: lobby_id });
  return (
    <div class="lobby">
      <a class="mono" href={`${href}${location.hash}`}>
        {shortId(lobby_id)}
      </a>
      <span class="cut">
        {game_mode_id} <span class="quiet">in {region_id}</span>
      </span>
      <Seats
        connected={connected_count}
        reserved={Math.max(0, player_count - connected_count)}
        max={row.max_players_normal}
      />
      <span class="badges">
        <span class={`badge ${status === 'open' ? 'good' : 'quiet'}`}>{status}</span>
      </span>
      <span class="quiet age">
        <Age of={create_ts} />
      </span>
    </div>
  );
}

function SharedLobby({ scope, id }: { scope: Scope; id: string }) {
  const watched = useWatched(DETAILS, { ...scope, lobby_id: id }).value;
  useTitle(`Lobby ${shortId(id)}`);
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <NotShared error={watched.error} />;
  return <SharedLobbyDetails lobby={watched.body.lobby} />;
}

function SharedLobbyDetails({ lobby }: { lobby: LobbyDetails }) {
  const { lobby_id, create_ts, ready_ts, stop_ts, game_mode_id, tags, state } = lobby;
  return (
    <>
      <div class="head">
        <h1>
          Lobby <span class="mono">{shortId(lobby_id)}</span>
        </h1>
        {stop_ts !== undefined && <span class="badge quiet">ended</span>}
      </div>
      <Life
        events={[
          { name: 'created', at: create_ts },
          { name: 'ready', at: ready_ts },
          { name: 'ended', at: stop_ts },
        ]}
        is_over={stop_ts !== undefined}
      />
      <Facts
        of={[
          stop_ts === undefined && ['Seats', <LobbySeats key="seats" lobby={lobby} />],
          ['Game mode', game_mode_id],
          ...Object.entries(tags).map(([name, value]): [string, string] => [`Tag ${name}`, value]),
        ]}
      />
      <LobbyPlayers lobby={lobby} />
      <LobbyState of={state} />
    </>
  );
}
