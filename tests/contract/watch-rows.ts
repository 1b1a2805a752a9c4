import { sql } from 'drizzle-orm';
import document from '../../docs/openapi.json' with { type: 'json' };
import { emptyCounts, startOfStep } from '../../src/features/counters/rules.ts';
import { insertMinutes } from '../../src/features/counters/store.ts';
import { createLogs } from '../../src/features/servers/logs/logs.ts';
import { minuteOf } from '../../src/features/servers/tables.ts';
import { insertSamples } from '../../src/features/servers/usage/usage-samples-store.ts';
import { topics } from '../../src/features/topics.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { MINUTE_MS } from '../../src/platform/units.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { buildsOf, SCRIPT } from '../support/builds.ts';
import { seatOf } from '../support/game-server.ts';
import { openOtherProcess } from '../support/lobbies/queue.ts';
import { makeGuest } from '../support/people.ts';
import { findProcessesOf } from '../support/processes.ts';
import { serversOf } from '../support/servers.ts';
import type { TestService } from '../support/service.ts';
import type { Tenant } from '../support/tenant.ts';

/** The paths of the API document that can be watched. */
export const WATCHED_PATHS = Object.entries(document.paths)
  .filter(([, methods]) => 'get' in methods && JSON.stringify(methods.get).includes('"watch_index"'))
  .map(([path]) => path);

/** A view, and how to change it. */
export interface WatchRow {
  path: string;
  token: string | undefined;
  change(): Promise<unknown>;
  /** A log, or a list of rows: the GET without an index does not return what has come, or changed, since an index. */
  is_log?: boolean;
}

type Muster = Pick<TestService, 'api' | 'administrator_token' | 'database_address' | 'clock'>;

/** Makes the row of each path, as the API document writes it. */
export type WatchRows = Record<string, () => WatchRow | Promise<WatchRow>>;

/** Returns a row for every path that can be watched. */
export function watchRowsOf(muster: Muster, { game, ids, tokens, member }: Tenant): WatchRows {
  const { api, administrator_token: owner } = muster;
  const { game_id, namespace_id, group_id } = game;
  const { public: player = '', cloud = '', lobby = '' } = tokens;
  const { lobby_id, server_id = '', build_id = '' } = ids;
  const cloud_game = `/cloud/games/${game_id}`;
  const namespace = `${cloud_game}/namespaces/${namespace_id}`;
  const environment = `/games/${game_id}/environments/${namespace_id}`;
  const group = `/group/groups/${group_id}`;
  const builds = buildsOf(muster, game);
  const servers = serversOf(muster, game);

  const change = (method: string, path: string, token: string, body?: unknown) => () =>
    api.ok(method, path, { token, body });
  const setState = () => change('PUT', '/matchmaker/lobbies/state', lobby, { map: crypto.randomUUID() })();
  const takeSeat = () => seatOf(api.post('/matchmaker/lobbies/join', player, { lobby_id }));
  const rename = () =>
    change('POST', `${group}/profile`, owner, { display_name: `Team ${crypto.randomUUID().slice(0, 8)}` })();
  const editProfile = (text: string) =>
    change('POST', '/identity/identities/self/profile', member.token, { display_name: text, bio: text });
  const writeLine = () => withDatabase(muster, (database) => addLine(database, muster, server_id));
  /** Creates a second lobby, after closing the first. */
  async function makeLobby(): Promise<string> {
    await api.ok('PUT', '/matchmaker/lobbies/closed', { token: lobby, body: { is_closed: true } });
    const body = { game_modes: ['default'] };
    return (await seatOf(api.call('POST', '/matchmaker/lobbies/find', { token: player, body }))).lobby_id;
  }
  const withGuest = (make: (guest: { token: string; identity_id: string }) => () => Promise<unknown>) => async () =>
    await make(await makeGuest(api, game))();
  async function prepareSite() {
    const body = { display_name: 'Site', files: [{ path: 'index.html', content_length: 5 }] };
    return await api.ok('POST', `${cloud_game}/cdn/sites`, { token: cloud, body });
  }

  /**
   * A find of another process waits in the queue, and each change adds one, in another namespace, where they delay no
   * other find.
   */
  async function waitInStaging(prefix: string): Promise<WatchRow> {
    const staging = { namespace_id: game.staging_id };
    const { token } = await api.ok('POST', `${cloud_game}/namespaces/${game.staging_id}/tokens/public`, {
      token: cloud,
    });
    const ticket = crypto.randomUUID();
    const wait = async (more: { ticket?: string } = {}) => {
      await using other_process = openOtherProcess(muster.database_address);
      await other_process.wait(staging, new Date(Date.UTC(2100, 0, 1)), more);
    };
    await wait({ ticket });
    return { path: `${prefix}/queue/${ticket}`, token, change: () => wait() };
  }

  const matchmaker = (prefix: string): WatchRows => ({
    [`${prefix}/lobbies/list`]: () => ({
      path: `${prefix}/lobbies/list?include_state=true`,
      token: player,
      change: setState,
    }),
    [`${prefix}/lobbies/{lobby_id}`]: () => ({
      path: `${prefix}/lobbies/${lobby_id}`,
      token: player,
      change: setState,
    }),
    [`${prefix}/players/statistics`]: () => ({
      path: `${prefix}/players/statistics`,
      token: player,
      change: takeSeat,
    }),
    [`${prefix}/queue/{ticket}`]: () => waitInStaging(prefix),
  });

  return {
    ...matchmaker('/matchmaker'),
    ...matchmaker('/v1'),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/analytics/matchmaker/live': () => ({
      path: `${namespace}/analytics/matchmaker/live`,
      token: cloud,
      change: takeSeat,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies': () => ({
      path: `${namespace}/matchmaker/lobbies`,
      token: cloud,
      change: takeSeat,
      is_log: true,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/counters': () => ({
      path: `${namespace}/counters?window=hour`,
      token: cloud,
      change: () => withDatabase(muster, (database) => addCounts(database, muster, namespace_id)),
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/receipts': () => ({
      path: `${namespace}/matchmaker/receipts`,
      token: cloud,
      change: takeSeat,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies': () => ({
      path: `${namespace}/logs/lobbies`,
      token: cloud,
      change: makeLobby,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/logs/lobbies/{lobby_id}': async () => {
      const removed = await makeLobby();
      return {
        path: `${namespace}/logs/lobbies/${removed}`,
        token: cloud,
        change: change('DELETE', `${cloud_game}/matchmaker/lobbies/${removed}`, cloud),
      };
    },
    '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}': async () => {
      const removed = await makeLobby();
      return {
        path: `${namespace}/matchmaker/lobbies/${removed}`,
        token: cloud,
        change: change('DELETE', `${cloud_game}/matchmaker/lobbies/${removed}`, cloud),
      };
    },
    '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}/visits': async () => {
      const removed = await makeLobby();
      return {
        path: `${namespace}/matchmaker/lobbies/${removed}/visits`,
        token: cloud,
        change: change('DELETE', `${cloud_game}/matchmaker/lobbies/${removed}`, cloud),
      };
    },
    '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs': () => ({
      path: `${cloud_game}/matchmaker/lobbies/${lobby_id}/logs?stream=std_err`,
      token: cloud,
      change: writeLine,
      is_log: true,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/servers': () => ({
      path: `${namespace}/servers?status=ended`,
      token: cloud,
      change: () => withDatabase(muster, (database) => addEndedServer(database, namespace_id, server_id)),
      is_log: true,
    }),
    '/cloud/games/{game_id}/namespaces/{namespace_id}/crashes': () => ({
      path: `${namespace}/crashes`,
      token: cloud,
      change: () =>
        withDatabase(muster, (database) => addEndedServer(database, namespace_id, server_id, { exit_code: 3 })),
    }),
    '/games/{game_id}/environments/{environment_id}/servers': () => ({
      path: `${environment}/servers`,
      token: cloud,
      change: async () => servers.create(await servers.bodyOf(build_id)),
    }),
    '/games/{game_id}/environments/{environment_id}/servers/{server_id}': async () => {
      const { body } = await servers.create(await servers.bodyOf(build_id));
      await servers.waitForStartOrEnd(body.server.id);
      return { path: `${servers.path}/${body.server.id}`, token: cloud, change: () => servers.destroy(body.server.id) };
    },
    '/games/{game_id}/environments/{environment_id}/servers/{server_id}/end': async () => {
      const { body } = await servers.create(await servers.bodyOf(build_id));
      const { id } = body.server;
      await servers.waitForStartOrEnd(id);
      const kill = async () => {
        for (const pid of findProcessesOf(id)) process.kill(pid, 'SIGKILL');
      };
      return { path: `${servers.path}/${id}/end`, token: cloud, change: kill };
    },
    '/games/{game_id}/environments/{environment_id}/servers/{server_id}/usage': async () => {
      // The service adds no samples of its own to one that has ended.
      const id = await withDatabase(muster, (database) => addEndedServer(database, namespace_id, server_id));
      const change = () => withDatabase(muster, (database) => addSample(database, muster, id));
      return { path: `${servers.path}/${id}/usage`, token: cloud, change, is_log: true };
    },
    '/games/{game_id}/environments/{environment_id}/servers/{server_id}/logs': () => ({
      path: `${servers.path}/${server_id}/logs?stream=std_err`,
      token: cloud,
      change: writeLine,
      is_log: true,
    }),
    '/games/{game_id}/environments/{environment_id}/servers/{server_id}/log-lines': () => ({
      path: `${servers.path}/${server_id}/log-lines?stream=std_err`,
      token: cloud,
      change: writeLine,
      is_log: true,
    }),
    '/games/{game_id}/environments/{environment_id}/builds': () => ({
      path: builds.path,
      token: cloud,
      change: () => builds.make(),
    }),
    '/games/{game_id}/environments/{environment_id}/builds/{build_id}': () => ({
      path: `${builds.path}/${build_id}`,
      token: cloud,
      change: change('PATCH', `${builds.path}/${build_id}/tags`, cloud, { tags: { seen: 'yes' } }),
    }),
    '/cloud/games/{game_id}/builds': () => ({
      path: `${cloud_game}/builds`,
      token: cloud,
      change: change('POST', `${cloud_game}/builds`, cloud, { ...SCRIPT, display_name: 'Build' }),
    }),
    '/cloud/games/{game_id}/cdn/sites': () => ({ path: `${cloud_game}/cdn/sites`, token: cloud, change: prepareSite }),
    '/cloud/games/{game_id}/uploads/{upload_id}': async () => {
      const { upload_id, presigned_requests } = await prepareSite();
      return {
        path: `${cloud_game}/uploads/${upload_id}`,
        token: cloud,
        change: () => fetch(presigned_requests[0].url, { method: 'PUT', body: 'hello' }),
      };
    },
    '/cloud/games': () => ({ path: '/cloud/games', token: member.token, change: rename }),
    '/cloud/games/{game_id}': () => ({
      path: cloud_game,
      token: cloud,
      change: change('POST', `${cloud_game}/versions`, cloud, { display_name: crypto.randomUUID(), config: {} }),
    }),
    '/portal/games/{game_name_id}/profile': async () => {
      const seen = await api.ok('GET', cloud_game, { token: cloud });
      return { path: `/portal/games/${seen.game.name_id}/profile`, token: player, change: rename };
    },
    '/group/groups': () => ({ path: '/group/groups', token: member.token, change: rename }),
    '/group/groups/{group_id}/profile': () => ({ path: `${group}/profile`, token: member.token, change: rename }),
    '/group/groups/{group_id}/members': async () => {
      const { code } = await api.ok('POST', `${group}/invites`, { token: owner, body: {} });
      return {
        path: `${group}/members`,
        token: member.token,
        change: withGuest(({ token }) => change('POST', `/group/invites/${code}/consume`, token)),
      };
    },
    '/group/groups/{group_id}/join-requests': async () => {
      return {
        path: `${group}/join-requests`,
        token: owner,
        change: withGuest(({ token }) => change('POST', `${group}/join-request`, token)),
      };
    },
    '/group/groups/{group_id}/bans': () => ({
      path: `${group}/bans`,
      token: owner,
      change: withGuest(({ identity_id }) => change('POST', `${group}/bans/${identity_id}`, owner)),
    }),
    '/identity/identities/self/profile': () => ({
      path: '/identity/identities/self/profile',
      token: member.token,
      change: editProfile('Ann'),
    }),
    '/identity/identities/batch/handle': () => ({
      path: `/identity/identities/batch/handle?identity_ids=${member.identity_id}`,
      token: owner,
      change: editProfile('Bob'),
    }),
    '/identity/identities/batch/summary': () => ({
      path: `/identity/identities/batch/summary?identity_ids=${member.identity_id}`,
      token: owner,
      change: editProfile('Cid'),
    }),
    '/identity/identities/{identity_id}/profile': () => ({
      path: `/identity/identities/${member.identity_id}/profile`,
      token: owner,
      change: editProfile('Dan'),
    }),
    '/identity/events/live': () => ({
      path: '/identity/events/live',
      token: member.token,
      change: editProfile('Eve'),
      is_log: true,
    }),
    '/cloud/devices/links': async () => {
      const { device_link_token } = await api.ok('POST', '/cloud/devices/links');
      return {
        path: `/cloud/devices/links?device_link_token=${device_link_token}`,
        token: undefined,
        change: change('POST', '/cloud/devices/links/complete', owner, { device_link_token, game_id }),
      };
    },
  };
}

async function withDatabase<Result>(
  { database_address }: Pick<TestService, 'database_address'>,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  await using database = openDatabase(database_address, 1);
  return await work(database);
}

let minutes_added = 0;
/** Adds a sample as the metering does, of a later minute each time. */
async function addSample(database: Database, { clock }: Pick<TestService, 'clock'>, server_id: string): Promise<void> {
  minutes_added += 1;
  const used = { cpu_ms: 100, memory_bytes: 1024, received_bytes: null, sent_bytes: null };
  await insertSamples(database.queries, [{ server_id, minute: minuteOf(clock.now()) + minutes_added, ...used }]);
}

/** Adds a server that has ended, like one that there is. Returns its id. */
async function addEndedServer(
  database: Database,
  namespace_id: string,
  server_id: string,
  end: { exit_code?: number } = {},
): Promise<string> {
  const id = Bun.randomUUIDv7();
  await database.transact(async (tx) => {
    await touch(tx, [topics.serversOf(namespace_id)]);
    const changes = sql`jsonb_build_object('server_id', ${id}::uuid, 'ended_at', now(), 'destroyed_at', now(),
      'exit_code', ${end.exit_code ?? null}::int)`;
    await tx.execute(sql`
      insert into servers select (jsonb_populate_record(servers, ${changes})).* from servers where server_id = ${server_id}`);
  });
  return id;
}

/** Adds counts of the current minute as another process does. */
async function addCounts(
  database: Database,
  { clock }: Pick<TestService, 'clock'>,
  namespace_id: string,
): Promise<void> {
  const place = { namespace_id, start_ts: startOfStep(clock.now(), MINUTE_MS), counted_by: crypto.randomUUID() };
  await insertMinutes(database, [{ ...place, ...emptyCounts(), refused: { MATCHMAKER_LOBBY_FULL: 1 } }]);
}

/** Adds a line as the log collector does. */
async function addLine(database: Database, { clock }: Pick<TestService, 'clock'>, server_id: string): Promise<void> {
  await createLogs({ database, clock }).addLine({ server_id, stream: 'std_err' }, `line ${crypto.randomUUID()}`);
}
