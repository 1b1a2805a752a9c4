import { toNumbers } from '../../shared/ports.ts';
import { ago, shortId } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import { pick } from '../pick.ts';
import { findServer, readAllServers, readEndingIds, readServers, type Server } from '../servers.ts';
import { Session, type SharedOptions } from '../session.ts';

interface ServersOptions extends SharedOptions {
  all?: boolean;
}

/** Lists the servers of a namespace. */
export async function listServers(options: ServersOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const { servers, is_complete } = options.all
    ? await readAllServers(session, scope)
    : { servers: await readServers(session, scope), is_complete: true };
  if (!is_complete) session.output.say(`Only the newest are shown, and those that run: ${servers.length} servers.`);
  const ending = options.all ? await readEndingIds(session, scope) : new Set<string>();
  session.show({ servers }, (output) => {
    if (servers.length === 0) return output.say(options.all ? 'No server has run here.' : 'No server is running.');
    output.table(
      ['SERVER', 'STATE', 'LOBBY', 'PORTS', 'AGE'],
      servers.map((server) => [
        shortId(server.id),
        ending.has(server.id) ? 'ending' : stateOf(server),
        shortId(server.tags.lobby_id ?? '-'),
        portsOf(server),
        ago(server.created_at),
      ]),
    );
  });
}

/** Shows a server, and how it ended if it has. */
export async function showServer(given: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const server = await findServer(session, scope, given);
  // A server that has been asked to end has no end yet.
  const { end } = await session.api.get<{ end?: object }>(`${paths.servers(scope)}/${server.id}/end`);
  const answer = { server, ...(end && { end }) };
  session.show(answer, (output) => output.record(answer));
}

/** Ends a server. */
export async function stopServer(given: string, options: SharedOptions): Promise<void> {
  const session = await Session.open(options);
  const scope = await session.scope();
  const list_command = session.commandIn(scope, 'servers');
  const server = pick(await readServers(session, scope), given, { what: 'server', idOf: ({ id }) => id, list_command });
  await session.api.call('DELETE', `${paths.servers(scope)}/${server.id}`);
  session.show({ server_id: server.id }, ({ say }) => say(`The server ${server.id} is ending.`));
}

function stateOf({ started_at, destroyed_at, start_after }: Server): string {
  if (destroyed_at !== undefined) return 'ended';
  if (started_at !== undefined) return 'running';
  return start_after === undefined ? 'starting' : 'restarting';
}

function portsOf({ network }: Server): string {
  const ports = Object.entries(network.ports).map(
    ([label, { protocol, public_port: port, port_range }]) =>
      `${label}:${toNumbers({ port, port_range }) ?? '?'}/${protocol}`,
  );
  return ports.join(' ') || '-';
}
