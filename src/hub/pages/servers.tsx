import { SUMMARY_ONLY } from '../data/lobbies.ts';
import { regionName, shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { search, setFilter } from '../data/router.ts';
import { useRows } from '../data/rows.ts';
import { SERVERS, type Server, type ServerStatus, STATUSES } from '../data/servers.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Choice, TextFilter } from '../parts/filters.tsx';
import { LobbyLink } from '../parts/lobby-link.tsx';
import { Notice } from '../parts/notice.tsx';
import { Rows } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';

const ROWS = '/cloud/games/{game_id}/namespaces/{namespace_id}/servers';
/** An answer of the service has at least this many servers, if there are as many: 8 MiB of rows of 330 KB. */
const SERVERS_THAT_FIT = 25;
/** Servers on a page of those that end or have ended. */
const PAGE_COUNT = 100;
const ROW_HEIGHTS = { wide: 48, narrow: 72 };

const SHOWN: [value: string, text: string][] = [
  ['ending', 'ending'],
  ['ended', 'ended'],
];

/** The servers of a namespace, newest first. */
export function ServersPage() {
  const { game, namespace } = useNamespace();
  const show = search.value.get('show');
  useTitle(`Servers · ${namespace.name_id} · ${game.display_name}`);
  return (
    <>
      <div class="head">
        <h1>Servers</h1>
      </div>
      {show === 'ending' || show === 'ended' ? <EndedServers key={show} status={show} /> : <RunningServers />}
    </>
  );
}

/** The servers that start or run: the newest ones, as many as fit into an answer of the service. */
function RunningServers() {
  const { scope, environment } = useNamespace();
  const watched = useWatched(SERVERS, environment).value;
  const counted = useRows(ROWS, scope, SUMMARY_ONLY).value;
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  const servers = watched.is === 'here' ? watched.body.servers : [];
  const shown = servers.filter(isWanted).map(({ id, tags, datacenter, created_at, ...server }) => ({
    id,
    tags,
    datacenter,
    created_at,
    status: server.started_at === undefined ? STATUSES.starting : STATUSES.running,
  }));
  const { starting = 0, running = 0 } = counted.is === 'here' ? counted.body.summary : {};
  const is_cut = servers.length >= SERVERS_THAT_FIT && servers.length < starting + running;
  const total = is_cut ? starting + running : servers.length;
  const counts = watched.is === 'here' ? `${shown.length} of ${total}` : 'Loading …';
  return (
    <>
      <Filters counts={counts} />
      {watched.is === 'here' && servers.length === 0 && <NoServers />}
      {is_cut && <p class="quiet">Only the newest {servers.length} are listed and searched.</p>}
      {servers.length > 0 && <ServerList of={shown} none="No server matches these filters." />}
    </>
  );
}

/** A page of the servers that have ended, or whose end was requested. Those before and after it are on other pages. */
function EndedServers({ status }: { status: 'ending' | 'ended' }) {
  const { scope } = useNamespace();
  const given = search.value.get('from') ?? '';
  const from = /^\d{1,5}$/.test(given) ? Number(given) : 0;
  const query = { status, from: String(from), count: String(PAGE_COUNT + 1) };
  const watched = useRows(ROWS, scope, query).value;
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  const rows = watched.is === 'here' ? watched.body.rows : [];
  const page = rows.slice(0, PAGE_COUNT);
  const shown = page
    .map(({ server_id, tags, datacenter_id, create_ts }) => ({
      id: server_id,
      tags,
      datacenter: datacenter_id,
      created_at: create_ts,
      status: STATUSES[status],
    }))
    .filter(isWanted);
  const goTo = (index: number) => () => setFilter('from', index <= 0 ? '' : String(index));
  const counts = page.length === 0 ? 'none' : `${from + 1} to ${from + page.length}`;
  return (
    <>
      <Filters counts={watched.is === 'here' ? counts : 'Loading …'} />
      {page.length > 0 && <ServerList of={shown} none="No server of this page matches these filters." />}
      <div class="row">
        {from > 0 && (
          <button type="button" onClick={goTo(from - PAGE_COUNT)}>
            Later servers
          </button>
        )}
        {rows.length > PAGE_COUNT && (
          <button type="button" onClick={goTo(from + PAGE_COUNT)}>
            Earlier servers
          </button>
        )}
      </div>
    </>
  );
}

function Filters({ counts }: { counts: string }) {
  return (
    <div class="row filters">
      <TextFilter name="find" label="Id or tag" />
      <Choice name="show" label="Show" options={SHOWN} none="starting or running" removes="from" />
      <p class="quiet end">{counts}</p>
    </div>
  );
}

function isWanted({ id, tags }: Pick<Server, 'id' | 'tags'>): boolean {
  const wanted = search.value.get('find')?.trim().toLowerCase() ?? '';
  return id.includes(wanted) || Object.values(tags).some((tag) => tag.toLowerCase().includes(wanted));
}

interface ListedServer extends Pick<Server, 'id' | 'tags' | 'datacenter'> {
  created_at: number | string;
  status: ServerStatus;
}

function ServerList({ of, none }: { of: ListedServer[]; none: string }) {
  if (of.length === 0) return <p class="card pad">{none}</p>;
  return (
    <Rows items={of} keyOf={({ id }) => id} heights={ROW_HEIGHTS} label="Servers">
      {(server) => <ServerRow server={server} />}
    </Rows>
  );
}

function ServerRow({ server: { id, tags, created_at, datacenter, status } }: { server: ListedServer }) {
  const { game } = useNamespace();
  const hrefTo = useHref();
  return (
    <div class="server">
      <a class="mono" href={hrefTo({ page: 'servers', id })}>
        {shortId(id)}
      </a>
      <span class="cut">
        {tags.lobby_id === undefined ? <Tags of={tags} /> : <LobbyLink lobby_id={tags.lobby_id} />}{' '}
        <span class="quiet">in {regionName(game, datacenter)}</span>
      </span>
      <span class={`badge ${status.tone}`}>{status.text}</span>
      <span class="quiet age">
        <Age of={created_at} />
      </span>
    </div>
  );
}

function Tags({ of }: { of: Record<string, string> }) {
  const text = Object.entries(of)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
  return <>{text || <span class="quiet">no tags</span>}</>;
}

function NoServers() {
  const { game, namespace } = useNamespace();
  const options = `--game ${game.name_id} --namespace ${namespace.name_id} --url ${location.origin}`;
  return (
    <div class="card pad stack">
      <h2>No server is running</h2>
      <p>A find starts one for its lobby. This shows what the latest one wrote before it ended:</p>
      <Copyable text={`muster logs ${options}`} />
    </div>
  );
}
