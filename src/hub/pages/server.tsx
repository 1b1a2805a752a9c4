import { useAction } from '../data/actions.ts';
import { type Answer, remove } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { useEntries } from '../data/entries.ts';
import { regionName, shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { portAddress, type Server, statusOf } from '../data/servers.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Ending, useEnd } from '../parts/ending.tsx';
import { Facts } from '../parts/facts.tsx';
import { Life } from '../parts/life.tsx';
import { LobbyLink } from '../parts/lobby-link.tsx';
import { Log } from '../parts/log.tsx';
import { RefusedPage } from '../parts/refused.tsx';
import { Spark } from '../parts/spark.tsx';
import { momentOf } from '../parts/time.tsx';

const SERVER = '/games/{game_id}/environments/{environment_id}/servers/{server_id}';
const USAGE = '/games/{game_id}/environments/{environment_id}/servers/{server_id}/usage';
/** Minutes that a line of usage shows. */
const MINUTES = 60;
const THOUSANDTHS = 1_000;

/** A server: how it lives or ended, what it uses, and its log. */
export function ServerPage({ id }: { id: string }) {
  const { game, environment } = useNamespace();
  const parameters = { ...environment, server_id: id };
  const watched = useWatched(SERVER, parameters).value;
  const end = useEnd(id);
  const is_ending = end.is === 'here' && end.body.end === undefined;
  useTitle(`Server ${shortId(id)} · ${game.display_name}`);
  if (watched.is === 'refused') return <RefusedPage error={watched.error} what="server" />;
  // Only both answers together say whether a server whose end was requested has ended.
  if (watched.is === 'waiting' || end.is === 'waiting') return <p class="quiet">Loading …</p>;
  const { server } = watched.body;
  const status = statusOf(server, { is_ending });
  return (
    <>
      <div class="head">
        <h1>
          Server <span class="mono">{shortId(id)}</span>
        </h1>
        <span class={`badge ${status.tone}`}>{status.text}</span>
        <div class="end">{may_act.value && server.destroyed_at === undefined && <EndServer server={server} />}</div>
      </div>
      <Ending id={id} />
      <Life
        events={[
          { name: 'created', at: server.created_at },
          { name: 'started', at: server.started_at },
          { name: is_ending ? 'asked to end' : 'ended', at: server.destroyed_at },
        ]}
        is_over={server.destroyed_at !== undefined && !is_ending}
      />
      <ServerFacts server={server} />
      <Log parameters={parameters} since={server.created_at} />
    </>
  );
}

function EndServer({ server: { id, tags } }: { server: Server }) {
  const { environment } = useNamespace();
  const { is_busy, act } = useAction();
  const end = () => act(`Server ${shortId(id)} is ending.`, () => remove(SERVER, { ...environment, server_id: id }));
  return (
    <Confirm
      label="End"
      question={`End server ${shortId(id)}?`}
      is_disabled={is_busy.value}
      class="danger"
      onConfirm={() => void end()}
    >
      <p>
        It gets SIGTERM, and SIGKILL if it is still running after its kill timeout.
        {tags.lobby_id !== undefined && ' Its lobby ends too.'}
      </p>
    </Confirm>
  );
}

function ServerFacts({ server }: { server: Server }) {
  const { game } = useNamespace();
  const { tags, network, datacenter, runtime, restart_of, restarted_as } = server;
  const { lobby_id, ...others } = tags;
  return (
    <Facts
      of={[
        lobby_id !== undefined && ['Lobby', <LobbyLink key="lobby" lobby_id={lobby_id} />],
        ['Id', <code key="id">{server.id}</code>],
        restart_of !== undefined && ['Restart of', <OtherServer key="restart_of" id={restart_of} />],
        restarted_as !== undefined && ['Restarted as', <OtherServer key="restarted_as" id={restarted_as} />],
        ['Created', momentOf(server.created_at)],
        ['Region', regionName(game, datacenter)],
        ['Ports', <Ports key="ports" of={network.ports} />],
        ['Usage', <Usage key="usage" server={server} />],
        ['Build', <code key="build">{shortId(runtime.build)}</code>],
        ...Object.entries(others).map(([name, value]): [string, string] => [`Tag ${name}`, value]),
      ]}
    />
  );
}

/** A link to another server of the namespace. */
function OtherServer({ id }: { id: string }) {
  const hrefTo = useHref();
  return (
    <a class="mono" href={hrefTo({ page: 'servers', id })}>
      {shortId(id)}
    </a>
  );
}

function Ports({ of }: { of: Server['network']['ports'] }) {
  const ports = Object.entries(of);
  if (ports.length === 0) return <span class="quiet">none</span>;
  return (
    <ul>
      {ports.map(([label, port]) => (
        <li key={label}>
          {label}{' '}
          {portAddress(port) !== undefined && (
            <code>
              {port.protocol} {portAddress(port)}
            </code>
          )}
        </li>
      ))}
    </ul>
  );
}

type Sample = Answer<typeof USAGE, 'get'>['samples'][number];

function Usage({ server: { id, resources, destroyed_at } }: { server: Server }) {
  const { environment } = useNamespace();
  const samples = useEntries<typeof USAGE, Sample>({
    path: USAGE,
    parameters: { ...environment, server_id: id },
    entries_max: MINUTES,
    read: (body) => body.samples,
  }).value.entries;
  const last = samples.at(-1);
  if (!last) {
    const has_ended = destroyed_at !== undefined;
    return <span class="quiet">{has_ended ? 'none was recorded' : 'after its first minute'}</span>;
  }
  const cpu = `${(last.cpu / THOUSANDTHS).toFixed(2)} of ${(resources.cpu / THOUSANDTHS).toFixed(2)} cores`;
  const memory = `${Math.round(last.memory ?? 0)} of ${resources.memory} MiB`;
  return (
    <div class="row">
      <Spark values={samples.map((sample) => sample.cpu)} max={resources.cpu} label={cpu} /> {cpu}
      <Spark values={samples.map((sample) => sample.memory ?? 0)} max={resources.memory} label={memory} /> {memory}
    </div>
  );
}
