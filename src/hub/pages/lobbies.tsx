import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useAction } from '../data/actions.ts';
import { may_act } from '../data/bearer.ts';
import {
  type LOBBIES,
  type LobbyRow,
  type LobbySummary,
  queryOf,
  STATUS_NAMES,
  useLobbyWindow,
} from '../data/lobbies.ts';
import { regionName, shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { tokenFor } from '../data/players.ts';
import { search } from '../data/router.ts';
import type { RowWindow } from '../data/rows.ts';
import { gameModesOf, useLiveVersion } from '../data/versions.ts';
import { useTitle } from '../data/watched.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Figures } from '../parts/figures.tsx';
import { Choice, TextFilter, withChosen } from '../parts/filters.tsx';
import { LobbyActions } from '../parts/lobby-actions.tsx';
import { LobbyBadges } from '../parts/lobby-badges.tsx';
import { Notice } from '../parts/notice.tsx';
import { Rows } from '../parts/rows.tsx';
import { Seats } from '../parts/seats.tsx';
import { ShareButton } from '../parts/share-button.tsx';
import { Age } from '../parts/time.tsx';
import { History } from './history.tsx';
import { NewLobby } from './new-lobby.tsx';

const ROW_HEIGHTS = { wide: 54, narrow: 108 };

/** The running lobbies of a namespace, with their seats. */
export function LobbiesPage() {
  const { game, namespace } = useNamespace();
  useTitle(`${namespace.name_id} · ${game.display_name}`);
  // Passed as children, these are not drawn again with every change of a lobby.
  return (
    <Lobbies>
      <div class="row">
        <NewLobby />
        <ShareButton />
      </div>
      <History />
    </Lobbies>
  );
}

/** The lobbies that match the filters, below a summary of all lobbies and the children. */
function Lobbies({ children }: { children: ComponentChildren }) {
  const { namespace, scope } = useNamespace();
  const of = (name: string) => search.value.get(name) ?? '';
  const filters = { text: of('find'), mode: of('mode'), region: of('region'), status: of('status') };
  const { watched, moveTo } = useLobbyWindow(scope, queryOf(filters, namespace.version_id));
  const known = watched.value;
  if (known.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (known.is === 'refused') return <Notice error={known.error} />;
  const { summary } = known.body;
  return (
    <>
      <Summary of={summary} />
      {children}
      {summary.lobbies === 0 ? <NoLobbies /> : <LobbyList of={known.body} onScrolledTo={moveTo} />}
    </>
  );
}

function Summary({ of: { lobbies, players, seats, empty } }: { of: LobbySummary }) {
  const { namespace } = useNamespace();
  const figures: [string, number][] = [
    ['lobbies', lobbies],
    ['without players', empty],
    ['players', players],
    ['seats free', Math.max(0, seats - players)],
  ];
  return (
    <div class="head">
      <h1>{namespace.display_name}</h1>
      <Figures of={figures} />
    </div>
  );
}

interface LobbyListProps {
  of: RowWindow<typeof LOBBIES>;
  onScrolledTo(first: number): void;
}

function LobbyList({ of: { rows, from, matching, summary }, onScrolledTo }: LobbyListProps) {
  const { game } = useNamespace();
  const modes = withChosen(Object.keys(summary.game_modes), search.value.get('mode') ?? '');
  const regions = withChosen(Object.keys(summary.regions), search.value.get('region') ?? '');
  return (
    <>
      <div class="row filters">
        <TextFilter name="find" label="Id of lobby or server" />
        <Choice name="mode" label="Game mode" options={modes.map((mode) => [mode, mode])} />
        <Choice name="region" label="Region" options={regions.map((id) => [id, regionName(game, id)])} />
        <Choice name="status" label="Status" options={STATUS_NAMES.map((status) => [status, status])} />
        <p class="quiet end">
          {matching} of {summary.lobbies}
        </p>
      </div>
      {matching === 0 ? (
        <p class="card pad">No lobby matches these filters.</p>
      ) : (
        <Rows
          items={rows}
          from={from}
          total={matching}
          onScrolledTo={onScrolledTo}
          keyOf={({ lobby_id }) => lobby_id}
          heights={ROW_HEIGHTS}
          label="Lobbies"
        >
          {(lobby) => <ListedLobby lobby={lobby} />}
        </Rows>
      )}
    </>
  );
}

function ListedLobby({ lobby }: { lobby: LobbyRow }) {
  const { game } = useNamespace();
  const hrefTo = useHref();
  const { lobby_id, game_mode_id, region_id, create_ts, player_count, connected_count, max_players_normal } = lobby;
  const href = hrefTo({ page: 'lobbies', id: lobby_id });
  return (
    <div class="lobby">
      <a class="mono" href={href}>
        {shortId(lobby_id)}
      </a>
      <span class="cut">
        {game_mode_id} <span class="quiet">in {regionName(game, region_id)}</span>
      </span>
      <Seats
        connected={connected_count}
        reserved={Math.max(0, player_count - connected_count)}
        max={max_players_normal}
      />
      <LobbyBadges of={lobby} />
      <span class="quiet age">
        <Age of={create_ts} />
      </span>
      <LobbyActions lobby={lobby} />
    </div>
  );
}

/** Says how to get the first lobby, with this namespace's values. */
function NoLobbies() {
  const { game, namespace, scope } = useNamespace();
  const version = useLiveVersion();
  const token = useSignal('PUBLIC_TOKEN');
  const { is_busy, act } = useAction();
  if (version === undefined || version instanceof Error) return <p class="quiet">No lobby is running.</p>;
  const [mode] = Object.keys(gameModesOf(version));
  if (mode === undefined) {
    return (
      <div class="card pad stack">
        <h2>This namespace has no game modes yet</h2>
        <p>In the folder of the game, this puts it live here:</p>
        <Copyable text={`muster deploy ${namespace.name_id} --game ${game.name_id} --url ${location.origin}`} />
      </div>
    );
  }
  const makeToken = () =>
    act('The command has a new public token.', async () => {
      token.value = await tokenFor(scope);
    });
  const find = JSON.stringify({ game_modes: [mode] });
  return (
    <div class="card pad stack">
      <h2>No lobby is running</h2>
      <p>A player's find starts one, and it appears here:</p>
      <Copyable
        text={`curl ${location.origin}/matchmaker/lobbies/find -H 'Authorization: Bearer ${token.value}' -d '${find}'`}
      />
      {may_act.value && token.value === 'PUBLIC_TOKEN' && (
        <div class="row">
          <button type="button" disabled={is_busy.value} onClick={() => void makeToken()}>
            Create a public token for it
          </button>
        </div>
      )}
    </div>
  );
}
