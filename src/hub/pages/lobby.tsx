import { useDeployments } from '../data/deployments.ts';
import { eventsOfDeployments, eventsOfVisits, VISITS } from '../data/lobby-life.ts';
import { regionName, shortId, useHref, useNamespace, versionName } from '../data/namespaces.ts';
import { portAddress, SERVERS, type Server } from '../data/servers.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Ending } from '../parts/ending.tsx';
import { Facts } from '../parts/facts.tsx';
import { Life } from '../parts/life.tsx';
import { LobbyActions } from '../parts/lobby-actions.tsx';
import { LobbyBadges } from '../parts/lobby-badges.tsx';
import { type LobbyDetails, LobbyPlayers, LobbySeats, LobbyState } from '../parts/lobby-players.tsx';
import { Log } from '../parts/log.tsx';
import { RefusedPage } from '../parts/refused.tsx';
import { ShareButton } from '../parts/share-button.tsx';
import { momentOf } from '../parts/time.tsx';

const ONE = '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies/{lobby_id}';
const DETAILS = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}';

const STOP_REASONS = {
  server_ended: 'its server ended',
  not_ready_in_time: 'its server did not become ready in time',
  idle: 'it had no players',
  removed: 'it was ended by hand or by a tool',
  machine_lost: 'its machine no longer answers',
  machine_drained: 'its machine was drained',
} as const;

/** A lobby, running or stopped: its life, seats, server and log. */
export function LobbyPage({ id }: { id: string }) {
  const { game, namespace, scope, environment } = useNamespace();
  const past = useWatched(ONE, { ...scope, lobby_id: id }).value;
  const details = useWatched(DETAILS, { ...scope, lobby_id: id }).value;
  const servers = useWatched(SERVERS, environment, {
    include_destroyed: 'true',
    tags_json: JSON.stringify({ lobby_id: id }),
  }).value;
  const visits = useWatched(VISITS, { ...scope, lobby_id: id }).value;
  const { deployments } = useDeployments({ game, namespace });
  useTitle(`Lobby ${shortId(id)} · ${game.display_name}`);
  if (past.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (past.is === 'refused') return <RefusedPage error={past.error} what="lobby" />;
  const { lobby } = past.body;
  const { stopped } = lobby.status;
  const server = servers.is === 'here' ? servers.body.servers[0] : undefined;
  const detailed = details.is === 'here' ? details.body.lobby : undefined;
  const running = detailed?.stop_ts === undefined ? detailed : undefined;
  return (
    <>
      <div class="head">
        <h1>
          Lobby <span class="mono">{shortId(id)}</span>
        </h1>
        {stopped ? (
          <span class={`badge ${stopped.failed ? 'bad' : 'quiet'}`}>{stopped.failed ? 'failed' : 'ended'}</span>
        ) : (
          running && <LobbyBadges of={toBadged(running)} />
        )}
        <div class="end row">
          <ShareButton lobby_id={id} />
          {running && <LobbyActions lobby={{ ...running, player_count: running.players.length }} />}
        </div>
      </div>
      {detailed?.stop_reason !== undefined && <p>The lobby ended because {STOP_REASONS[detailed.stop_reason]}.</p>}
      {server && <Ending id={server.id} />}
      <Life
        events={[
          { name: 'created', at: lobby.create_ts },
          { name: 'started', at: lobby.start_ts },
          { name: 'ready', at: lobby.ready_ts },
          ...(visits.is === 'here' ? eventsOfVisits(visits.body.visits) : []),
          ...eventsOfDeployments(game, deployments, { create_ts: lobby.create_ts, stop_ts: stopped?.stop_ts }),
          { name: 'closed', at: detailed?.closed_ts, kind: 'change' },
          { name: 'ended', at: stopped?.stop_ts },
        ]}
        is_over={stopped !== undefined}
      />
      {visits.is === 'here' && visits.body.has_earlier && <p class="quiet">Earlier players are not shown.</p>}
      <Facts
        of={[
          running && ['Seats', <LobbySeats key="seats" lobby={running} />],
          ['Created', momentOf(lobby.create_ts)],
          ['Game mode', lobby.lobby_group_name_id],
          ['Region', regionName(game, lobby.region_id)],
          detailed && ['Version', <VersionLink key="version" version_id={detailed.version_id} />],
          detailed?.publicity !== undefined && ['Publicity', detailed.publicity],
          detailed?.code !== undefined && ['Code to join', <code key="code">{detailed.code}</code>],
          ...Object.entries(detailed?.tags ?? {}).map(([name, value]): [string, string] => [`Tag ${name}`, value]),
          ['Id', <code key="id">{id}</code>],
          servers.is === 'here' && ['Server', <ServerLink key="server" server={server} />],
        ]}
      />
      {detailed && <LobbyPlayers lobby={detailed} />}
      <LobbyState of={detailed?.state} />
      {server && <Log parameters={{ ...environment, server_id: server.id }} since={server.created_at} />}
    </>
  );
}

function toBadged({ ready_ts, is_closed, players, max_players_normal, version_id }: LobbyDetails) {
  const status = ready_ts === undefined ? ('starting' as const) : is_closed ? ('closed' as const) : ('open' as const);
  return { status, is_closed, player_count: players.length, max_players_normal, version_id };
}

function VersionLink({ version_id }: { version_id: string }) {
  const { game, namespace } = useNamespace();
  return (
    <>
      {versionName(game, version_id)}
      {version_id !== namespace.version_id && <span class="quiet"> (not the live one)</span>}
    </>
  );
}

function ServerLink({ server }: { server: Server | undefined }) {
  const hrefTo = useHref();
  if (!server) return <span class="quiet">removed</span>;
  const { id, network } = server;
  const addresses = Object.values(network.ports).map(portAddress);
  return (
    <>
      <a class="mono" href={hrefTo({ page: 'servers', id })}>
        {shortId(id)}
      </a>{' '}
      <code class="quiet">{addresses.filter((address) => address !== undefined).join(' ')}</code>
    </>
  );
}
