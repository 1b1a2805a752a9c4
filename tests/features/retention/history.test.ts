import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { deleteEnded as deleteLobbies } from '../../../src/features/lobbies/upkeep/retention.ts';
import { hasLobbyOn } from '../../../src/features/lobbies/upkeep/retention-store.ts';
import { startRetention } from '../../../src/features/retention/retention.ts';
import { removeEnded as removeServers } from '../../../src/features/servers/retention.ts';
import type { InUse } from '../../../src/features/servers/retention-store.ts';
import { type Database, LOCKS, openDatabase } from '../../../src/platform/database/database.ts';
import { openFeed } from '../../../src/platform/watch/feed.ts';
import { createFixedClock } from '../../support/clock.ts';
import { countScans } from '../../support/database/table-scans.ts';
import type { TestGame } from '../../support/game.ts';
import { copyHistory, countHistory, removeHistory } from '../../support/history.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;
const NEVER_MS = 2 ** 31 - 1;
const DAY_MS = 24 * HOUR_MS;
/** Far from the times of anything that the tests create. */
const MONTH_AGO = new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 30 * DAY_MS);
const ALL = { servers: 1, ports: 1, usage: 1, meters: 1, logs: 1, lobbies: 1, players: 3, topics: 4 };

// The service's own loop keeps everything, so each test removes what it names.
const muster = shareService({ MUSTER_HISTORY_DAYS: '0' });
let database: Database;
let game: TestGame;
let running_id: string;
let ray_id: string;
beforeAll(async () => {
  database = openDatabase(muster.database_address, 4);
  game = await makeRoomGame(muster, { source: READY_SOURCE });
  const body = { game_modes: ['default'] };
  const found = await muster.api.call('POST', '/matchmaker/lobbies/find', { token: game.public_token, body });
  running_id = found.body.lobby.lobby_id;
  ray_id = found.headers.get('rvt-ray-id') ?? '';
}, 300_000);
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const copy = (ended_at: Date | null, copies = 1) => copyHistory(database, running_id, { ended_at, copies });
const counted = (ids: Awaited<ReturnType<typeof copy>>) => countHistory(database, ids);
const shifted = (moment: Date, milliseconds: number) => new Date(moment.getTime() + milliseconds);
const asDeveloper = (path: string) => muster.api.get(path, game.cloud_token);
const history = (more: string) => `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/logs/lobbies${more}`;

const usageOf = async (start: Date, end: Date): Promise<number> => {
  const window = `query_start_ts=${start.getTime()}&query_end_ts=${end.getTime()}`;
  const answer = await muster.api.get(
    `/cloud/groups/${game.group_id}/billing/usage?${window}`,
    muster.administrator_token,
  );
  return answer.body.games[0].regions[0]?.uptime ?? 0;
};

describe('history:', () => {
  test('what ended before the limit is removed with everything that belongs to it; what ended at the limit stays', async () => {
    const old = await copy(shifted(MONTH_AGO, -1));
    const young = await copy(MONTH_AGO);
    await removeHistory(database, MONTH_AGO);
    expect(await counted(old)).toEqual({});
    expect(await counted(young)).toEqual(ALL);
  });

  test('what still runs stays, however old it is', async () => {
    const running = await copy(null);
    await removeHistory(database, MONTH_AGO);
    // The usage of its server in 1970 is summed up.
    const { usage: _, ...rest } = ALL;
    expect(await counted(running)).toEqual(rest);
  });

  test('a server stays while a lobby runs on it, or while it has a log', async () => {
    const open = await copy(MONTH_AGO);
    await database.queries.execute(sql`update lobbies set stop_ts = null where lobby_id = ${open.lobby_ids[0]}`);
    await database.queries.execute(sql`
      update players set remove_ts = null, remove_reason = null where lobby_id = ${open.lobby_ids[0]}`);
    const logging = await copy(MONTH_AGO);
    await database.queries.execute(sql`
      update server_log_chunks set content = 'x' where server_id = ${logging.server_ids[0]}`);
    await removeHistory(database, shifted(MONTH_AGO, HOUR_MS));
    expect(await counted(open)).toMatchObject({ servers: 1, lobbies: 1, players: 3 });
    expect(await counted(logging)).toMatchObject({ servers: 1, logs: 1 });
  });

  test('the first server of a chain stays while another of it runs', async () => {
    const [first, second] = [await copy(MONTH_AGO), await copy(MONTH_AGO)];
    const running = await copy(null);
    const chain = [first, second, running].map(({ server_ids }) => server_ids[0]);
    await database.queries.execute(sql`
      update servers set chain_id = ${chain[0]} where server_id = any(${sql.param(chain)}::uuid[])`);
    await removeHistory(database, shifted(MONTH_AGO, HOUR_MS));
    expect([await counted(first), await counted(second)]).toMatchObject([{ servers: 1 }, {}]);
    expect((await counted(second)).servers).toBeUndefined();
    await database.queries.execute(sql`update servers set ended_at = now() where server_id = ${chain[2]}`);
    await removeHistory(database, shifted(MONTH_AGO, HOUR_MS));
    expect((await counted(first)).servers).toBeUndefined();
  });

  test('a bill is the same after its servers were removed', async () => {
    const ended_at = shifted(MONTH_AGO, -10 * DAY_MS);
    await copy(ended_at, 10);
    const { server_ids } = await copy(ended_at);
    const remove = () => removeHistory(database, shifted(MONTH_AGO, -DAY_MS));
    // As an early release wrote it.
    await database.queries.execute(sql`
      update server_usage set from_ts = null, until_ts = null where server_id = ${server_ids[0]}`);
    const windows = [
      [shifted(ended_at, -DAY_MS), shifted(ended_at, DAY_MS)],
      [shifted(ended_at, -600_000), ended_at],
      [ended_at, shifted(ended_at, 600_000)],
    ] as const;
    const bill = () => Promise.all(windows.map(([start, end]) => usageOf(start, end)));
    const before = await bill();
    // 7 of these 10 minutes of 101 ms are before the hour.
    expect(before).toEqual([1_111, 707, 404]);
    await remove();
    expect(await bill()).toEqual(before);
    // Later usage of the same ten minutes is added.
    await copy(ended_at);
    const more = await bill();
    expect(more).toEqual([1_212, 778, 434]);
    await remove();
    expect(await bill()).toEqual(more);
  });

  test('concurrent processes remove each row once', async () => {
    const ended_at = shifted(MONTH_AGO, -3 * DAY_MS);
    const old = await copy(ended_at, 1_200);
    const day = [shifted(ended_at, -HOUR_MS), shifted(ended_at, HOUR_MS)] as const;
    const before = await usageOf(...day);
    expect(before).toBe(1_200 * 101);
    const remove = () => removeHistory(database, MONTH_AGO);
    await Promise.all([remove(), remove(), remove()]);
    // A process that finds another at work leaves the rows to it.
    await remove();
    expect(await counted(old)).toEqual({});
    expect(await usageOf(...day)).toBe(before);
  });

  test('a process does nothing while another removes rows', async () => {
    const old = await copy(shifted(MONTH_AGO, -1));
    await database.transact(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(${LOCKS.retention})`);
      await removeHistory(database, MONTH_AGO);
    });
    expect(await counted(old)).toEqual(ALL);
    await removeHistory(database, MONTH_AGO);
    expect(await counted(old)).toEqual({});
  });

  test('a process that finds another at work removes nothing more, so no lobby goes before its players', async () => {
    const old = await copy(shifted(MONTH_AGO, -1));
    const all_steps = [deleteLobbies(database, MONTH_AGO), removeServers(database, MONTH_AGO, hasLobbyOn)];
    await database.transact(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(${LOCKS.retention})`);
      for (const steps of all_steps) await steps.next();
    });
    for (const steps of all_steps) for await (const _ of steps);
    expect(await counted(old)).toEqual(ALL);
    await removeHistory(database, MONTH_AGO);
  });

  test('players with seats are kept, also among many others, and those behind them are reached', async () => {
    const { lobby_ids } = await copy(null);
    await database.queries.execute(sql`
      insert into players (player_id, lobby_id, namespace_id, address, create_ts, remove_ts)
      -- Ids begin with the time, so those of players who came first are the lowest.
      select lpad(to_hex(number), 32, '0')::uuid, ${lobby_ids[0]}, ${game.namespace_id}, '192.0.2.2', to_timestamp(0),
        case when number % 2 = 0 then to_timestamp(0) end
      from generate_series(1, 9000) as number`);
    await removeHistory(database, MONTH_AGO);
    const rows = await database.queries.execute(sql`
      select count(*)::int as left, count(remove_ts)::int as removed from players where address = '192.0.2.2'`);
    expect([...rows]).toEqual([{ left: 4_500, removed: 0 }]);
    await database.queries.execute(sql`delete from players where address = '192.0.2.2'`);
  });

  test('no table is scanned as a whole', async () => {
    const tables = ['players', 'lobbies', 'servers', 'server_usage', 'server_log_chunks', 'server_meters'];
    await using one = openDatabase(muster.database_address, 1);
    const young = await copy(shifted(MONTH_AGO, DAY_MS), 3_000);
    await one.queries.execute(sql`analyze`);
    await copy(shifted(MONTH_AGO, -1), 600);
    const scans = async () => await Promise.all(tables.map((table) => countScans(one.queries, table)));
    const before = await scans();
    await removeHistory(one, MONTH_AGO);
    expect(await scans()).toEqual(before);
    expect((await counted(young)).servers).toBe(3_000);
    await removeHistory(one, shifted(MONTH_AGO, 2 * DAY_MS));
  });

  test('removed history is refused by id, and is not in lists and exports', async () => {
    const { lobby_ids, server_ids } = await copy(shifted(MONTH_AGO, -1));
    const [lobby_id = '', server_id = ''] = [lobby_ids[0], server_ids[0]];
    const { body } = await asDeveloper(history(`/${lobby_id}`));
    expect(body.lobby.lobby_id).toBe(lobby_id);
    const waiting = asDeveloper(history(`/${lobby_id}?watch_index=${body.watch.index}`));
    const listed = await asDeveloper(history(''));
    const waiting_for_list = asDeveloper(history(`?watch_index=${listed.body.watch.index}`));
    expect(idsIn(listed.body)).toContain(lobby_id);
    const server = `/games/${game.game_id}/environments/${game.namespace_id}/servers/${server_id}`;
    const { watch } = (await asDeveloper(server)).body;
    const waiting_for_server = asDeveloper(`${server}?watch_index=${watch.index}`);
    await using other = await openTestService({}, { database_of: muster });
    expect(other.config.history_days).toBe(30);
    expect(outcomeOf(await waiting_for_server)).toBe('404 SERVERS_SERVER_NOT_FOUND');
    expect(outcomeOf(await waiting)).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    const list = (await waiting_for_list).body;
    expect(idsIn(list)).not.toContain(lobby_id);
    expect(list.watch.index).not.toBe(listed.body.watch.index);
    expect(idsIn((await asDeveloper(history(''))).body)).toContain(running_id);

    const lobbies = `/cloud/games/${game.game_id}/matchmaker/lobbies`;
    expect(outcomeOf(await asDeveloper(`${lobbies}/${lobby_id}/logs?stream=std_out`))).toBe(
      '404 MATCHMAKER_LOBBY_NOT_FOUND',
    );
    const removing = await muster.api.call('DELETE', `${lobbies}/${lobby_id}`, { token: game.cloud_token });
    expect(removing.body).toEqual({ did_remove: false });
    const window = { query_start: 0, query_end: Date.now() + DAY_MS };
    const { url } = (await muster.api.post(`${lobbies}/export-history`, game.cloud_token, window)).body;
    const text = await (await fetch(url)).text();
    expect(text).not.toContain(lobby_id);
    expect(text).toContain(running_id);
    const receipts = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/receipts`;
    expect((await asDeveloper(`${receipts}/${ray_id}`)).body.receipt.outcome.lobby_id).toBe(running_id);
  });

  test('watchers of removed things are notified', async () => {
    const { lobby_ids, server_ids } = await copy(shifted(MONTH_AGO, -1));
    await using feed = await openFeed(database, { emit() {} }, NEVER_MS);
    const watched = [`lobby:${lobby_ids[0]}`, `seats:${lobby_ids[0]}`, `server:${server_ids[0]}`];
    const received = new Set<string>();
    for (const topic of watched) {
      feed.subscribe(topic, (version) => {
        if (version === 0) received.add(topic);
      });
    }
    await removeHistory(database, MONTH_AGO);
    await waitFor(() => received.size === watched.length, 'all watchers to be notified');
  });

  test('its days are a setting: 0 days keep everything', async () => {
    const [old, young] = [await copy(shifted(MONTH_AGO, -1)), await copy(MONTH_AGO)];
    const dependencies = {
      database,
      clock: createFixedClock(shifted(MONTH_AGO, 30 * DAY_MS)),
      events: { emit() {} },
      lobbies: { deleteEnded: (before: Date) => deleteLobbies(database, before), hasLobbyOn },
      servers: { removeEnded: (before: Date, isInUse: InUse) => removeServers(database, before, isInUse) },
    };
    await startRetention({ ...dependencies, history_days: 0 }, new AbortController().signal).stopped;
    expect(await counted(old)).toEqual(ALL);
    const stopping = new AbortController();
    const retention = startRetention({ ...dependencies, history_days: 30 }, stopping.signal);
    await waitFor(async () => Object.keys(await counted(old)).length === 0, 'the old rows to be removed');
    stopping.abort();
    await retention.stopped;
    expect(await counted(young)).toEqual(ALL);
  });
});

const idsIn = (body: { lobbies: { lobby_id: string }[] }) => body.lobbies.map(({ lobby_id }) => lobby_id);
