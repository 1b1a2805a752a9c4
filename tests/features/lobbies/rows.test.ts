import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import type { Client } from '../../../src/client/client.ts';
import type { RowsBody } from '../../../src/client/rows.ts';
import {
  ORDERS,
  RunningList,
  STATUSES,
  statusOf,
  type Window,
} from '../../../src/features/lobbies/developers/running-list.ts';
import { createRunningRows } from '../../../src/features/lobbies/developers/running-rows.ts';
import type { RunningRow } from '../../../src/features/lobbies/developers/running-rows-store.ts';
import { RowsAnswer, RowsQuery, toWindow } from '../../../src/features/lobbies/developers/running-rows-wire.ts';
import { touchLobby } from '../../../src/features/lobbies/store.ts';
import { topics } from '../../../src/features/topics.ts';
import { type Database, openDatabase, type Tx } from '../../../src/platform/database/database.ts';
import { watched } from '../../../src/platform/http/route.ts';
import { touch } from '../../../src/platform/watch/versions.ts';
import { watchRows } from '../../../src/platform/watch/views.ts';
import { connect, QUICK } from '../../support/client.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { permitBareLobbies } from '../../support/lobbies/bare-lobbies.ts';
import { openChance } from '../../support/matchmaker/chance.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';
import { openSocketApp, type SocketApp } from '../../support/watch/socket-app.ts';

describe('rows of lobbies: rules', () => {
  const lobby: fc.Arbitrary<RunningRow> = fc.record({
    lobby_id: fc.uuid(),
    server_id: fc.uuid(),
    version_id: fc.constantFrom('1', '2'),
    game_mode: fc.constantFrom('ice', 'constructor'),
    region: fc.constantFrom('fra', 'lhr'),
    is_closed: fc.boolean(),
    publicity: fc.constantFrom(null, 'public' as const),
    player_count: fc.integer({ min: 0, max: 4 }),
    max_players_normal: fc.constant(4),
    max_players_direct: fc.constant(4),
    max_players_party: fc.constant(4),
    create_ts: fc.integer({ min: 0, max: 5 }),
    is_ready: fc.boolean(),
  });
  const lobbies = fc.uniqueArray(lobby, { maxLength: 20, selector: ({ lobby_id }) => lobby_id });
  const optional = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });
  const window: fc.Arbitrary<Window> = fc.record({
    game_mode: optional(fc.constantFrom('ice', 'constructor')),
    region: optional(fc.constantFrom('fra', 'lhr')),
    version_id: optional(fc.constant('1')),
    status: optional(fc.constantFrom(...STATUSES)),
    is_empty: optional(fc.boolean()),
    is_full: optional(fc.boolean()),
    order: fc.constantFrom(...ORDERS),
    other_than_version_id: optional(fc.constant('2')),
    id: optional(fc.constantFrom('a', '00', '-')),
    from: fc.integer({ min: 0, max: 6 }),
    count: fc.integer({ min: 0, max: 6 }),
  });

  test('windows of one filter and order follow each other, and have each matching lobby once', () => {
    fc.assert(
      fc.property(lobbies, window, (some, { count, ...filter }) => {
        const size = count + 1;
        const list = listOf(some);
        const pages = Array.from({ length: Math.ceil(20 / size) + 1 }, (_, page) =>
          list.select({ ...filter, from: page * size, count: size }),
        );
        const listed = pages.flatMap((page) => page.lobbies);
        expect(listed).toHaveLength(pages[0]?.matching ?? -1);
        expect(new Set(listed)).toEqual(new Set(list.select({ ...filter, from: 0, count: 20 }).lobbies));
        for (const { game_mode, region, version_id, player_count, lobby_id, server_id, ...others } of listed) {
          expect(filter.game_mode ?? game_mode).toBe(game_mode);
          expect(filter.region ?? region).toBe(region);
          expect(filter.version_id ?? version_id).toBe(version_id);
          expect(filter.status ?? statusOf(others)).toBe(statusOf(others));
          expect(filter.is_empty ?? player_count === 0).toBe(player_count === 0);
          expect(filter.is_full ?? player_count === 4).toBe(player_count === 4);
          expect(version_id).not.toBe(filter.other_than_version_id ?? '');
          expect(`${lobby_id} ${server_id}`).toContain(filter.id ?? '');
        }
        for (const [index, one] of listed.slice(1).entries()) {
          const before = listed[index] ?? one;
          const rises = { newest: 1, oldest: 1, fullest: 0, emptiest: 0 }[filter.order] === 1;
          const sign = filter.order === 'newest' || filter.order === 'fullest' ? -1 : 1;
          const key = ({ create_ts, player_count }: RunningRow) => (rises ? create_ts : player_count);
          expect(sign * (key(one) - key(before))).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  test('the list and its summary depend only on the lobbies in it, not on the changes that led there', () => {
    const change = fc.oneof(lobby, fc.nat(19));
    fc.assert(
      fc.property(lobbies, fc.array(change, { maxLength: 40 }), (some, changes) => {
        const model = new Map(some.map((one) => [one.lobby_id, one]));
        const list = listOf(some);
        for (const next of changes) {
          const known = [...model.values()][typeof next === 'number' ? next : next.player_count];
          if (typeof next === 'number' && known) {
            model.delete(known.lobby_id);
            list.delete(known.lobby_id);
          } else if (typeof next !== 'number') {
            // A lobby keeps its age.
            const changed = known ? { ...next, lobby_id: known.lobby_id, create_ts: known.create_ts } : next;
            model.set(changed.lobby_id, changed);
            list.set(changed);
          }
        }
        const left = [...model.values()];
        expect(list.summary()).toEqual(summarize(left));
        for (const order of ORDERS) {
          const window = { order, from: 0, count: 100 };
          expect(list.select(window)).toEqual(listOf(left).select(window));
        }
      }),
    );
  });
});

function listOf(lobbies: RunningRow[]): RunningList {
  const list = new RunningList();
  for (const lobby of lobbies) list.set(lobby);
  return list;
}

/** The summary of lobbies, as it is defined. */
function summarize(lobbies: RunningRow[]) {
  const totalOf = (some: RunningRow[]) => ({
    lobbies: some.length,
    players: some.reduce((sum, { player_count }) => sum + player_count, 0),
    seats: some.reduce((sum, { max_players_normal }) => sum + max_players_normal, 0),
  });
  const by = (key: 'game_mode' | 'region' | 'version_id') =>
    Object.fromEntries([...Map.groupBy(lobbies, (lobby) => lobby[key])].map(([name, some]) => [name, totalOf(some)]));
  const [starting = 0, open = 0, closed = 0] = STATUSES.map(
    (status) => lobbies.filter((lobby) => statusOf(lobby) === status).length,
  );
  return {
    ...totalOf(lobbies),
    empty: lobbies.filter(({ player_count }) => player_count === 0).length,
    status: { starting, open, closed },
    game_modes: by('game_mode'),
    regions: by('region'),
    versions: by('version_id'),
  };
}

type Row = Record<string, unknown> & { lobby_id: string };
interface Body extends RowsBody<Row> {
  matching: number;
  summary: Record<string, unknown>;
}

/** Returns what a client has, or what a GET answered, as a text without the index. */
const contentOf = ({ rows, matching, summary }: Pick<Body, 'matching' | 'summary'> & { rows?: Row[] }) =>
  JSON.stringify({ rows, matching, summary });

const WINDOWS = [
  '',
  '?order=fullest&count=5',
  '?order=oldest&from=3&count=4',
  '?status=open&is_empty=false',
  '?status=open&is_full=false&id=a',
  '?count=0',
];
const KINDS = ['create', 'ready', 'close', 'seat', 'seat', 'connect', 'connect', 'stop'] as const;
const CHANGES = IS_FULL_LENGTH ? 600 : 40;

describe('rows of lobbies that clients keep up to date', () => {
  let database: Database;
  let apps: SocketApp[];
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    const { address } = opened.use(await openTestDatabase());
    database = opened.use(openDatabase(address, 2));
    await permitBareLobbies(database);
    const routesOf = (its_database: Database) => {
      const list = createRunningRows({ database: its_database });
      const options = { summary: 'Rows.', allow: 'anyone', query: RowsQuery, response: RowsAnswer } as const;
      return [
        watched('/matchmaker/rows/:namespace_id', options, ({ params, query }) =>
          watchRows(list, { ...params, ...toWindow(query) }),
        ),
      ];
    };
    apps = [
      opened.use(await openSocketApp(address, { routesOf })),
      opened.use(await openSocketApp(address, { routesOf })),
    ];
  }, 300_000);
  afterAll(() => opened.disposeAsync());

  test('are those of the GET after every change, over the socket and by polls, of two processes', async () => {
    const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);
    console.log(`seed ${seed} (MUSTER_TEST_SEED)`);
    const chance = openChance(seed, 0);
    const namespace_id = crypto.randomUUID();
    const running: string[] = [];
    const change = (lobby_id: string, work: (tx: Tx, changed: number) => Promise<unknown>) =>
      database.transact(async (tx) => {
        const changed = await touchLobby(tx, { lobby_id, namespace_id }, [topics.playersOf(namespace_id)]);
        await work(tx, changed);
      });
    const changes = {
      create: (lobby_id: string) =>
        change(lobby_id, async (tx, changed) => {
          running.push(lobby_id);
          const mode = chance.oneIn(2) ? 'ice' : 'fire';
          await tx.execute(sql`
            insert into lobbies (lobby_id, game_id, namespace_id, version_id, game_mode, region, server_id,
              max_players_normal, max_players_direct, max_players_party, player_count, tags, is_closed, create_ts, changed)
            values (${lobby_id}, gen_random_uuid(), ${namespace_id}, ${namespace_id}, ${mode}, 'local',
              gen_random_uuid(), 8, 8, 8, 0, '{}', false, now(), ${changed})`);
        }),
      ready: (lobby_id: string) =>
        change(lobby_id, (tx, changed) =>
          tx.execute(sql`update lobbies set ready_ts = now(), changed = ${changed} where lobby_id = ${lobby_id}`),
        ),
      close: (lobby_id: string) =>
        change(lobby_id, (tx, changed) =>
          tx.execute(
            sql`update lobbies set is_closed = not is_closed, changed = ${changed} where lobby_id = ${lobby_id}`,
          ),
        ),
      seat: (lobby_id: string) =>
        change(lobby_id, async (tx, changed) => {
          const seated = await tx.execute(sql`
            update lobbies set player_count = player_count + 1, changed = ${changed}
            where lobby_id = ${lobby_id} and player_count < 8 returning 1`);
          if (seated.length === 0) return;
          await tx.execute(sql`
            insert into players (player_id, lobby_id, namespace_id, address, create_ts)
            values (gen_random_uuid(), ${lobby_id}, ${namespace_id}, '', now())`);
        }),
      connect: (lobby_id: string) =>
        database.transact(async (tx) => {
          await touch(tx, [topics.playersOf(namespace_id)]);
          await tx.execute(sql`
            update players set connect_ts = now() where player_id in (
              select player_id from players where lobby_id = ${lobby_id} and connect_ts is null limit 1
            )`);
        }),
      stop: (lobby_id: string) =>
        change(lobby_id, async (tx, changed) => {
          running.splice(running.indexOf(lobby_id), 1);
          await tx.execute(sql`update lobbies set stop_ts = now(), changed = ${changed} where lobby_id = ${lobby_id}`);
        }),
    };
    async function makeChange(): Promise<void> {
      const name = running.length < 6 ? 'create' : chance.pick(KINDS);
      await changes[name](name === 'create' ? Bun.randomUUIDv7() : chance.pick(running));
    }

    const clients: Client[] = [];
    const kept = apps.flatMap(({ url }) =>
      [
        { by: 'socket', timing: QUICK },
        { by: 'polls', timing: { ...QUICK, open_within_ms: 0 } },
      ].flatMap(({ by, timing }) => {
        const client = connect({ url, timing });
        clients.push(client);
        return WINDOWS.map((window) => {
          const path = `/matchmaker/rows/${namespace_id}${window}`;
          const one = { by, url, path, latest: '', bodies: 0, by_index: new Map<string, string>() };
          client.watchRows<Body>(path, (body) => {
            one.latest = contentOf(body);
            one.bodies += 1;
            one.by_index.set(body.watch.index, one.latest);
          });
          return one;
        });
      }),
    );
    const gets = new Map<string, string>();
    for (let times = 0; times < CHANGES; times += 1) {
      await makeChange();
      // Some changes come together.
      if (chance.oneIn(3)) await Promise.all([makeChange(), makeChange()]);
      for (const [position, one] of kept.entries()) {
        const body: Body = await (apps[position % 2] as SocketApp).api.ok('GET', one.path);
        expect(body.changes).toBeUndefined();
        const wanted = contentOf(body);
        const name = `${one.path} ${body.watch.index}`;
        expect(gets.get(name) ?? wanted).toBe(wanted);
        gets.set(name, wanted);
        await waitFor(() => one.latest === wanted, `${one.path} by ${one.by} to have what the GET answers`);
        // One index has one content, on both processes and in all ways.
        for (const [index, content] of one.by_index) expect(gets.get(`${one.path} ${index}`) ?? content).toBe(content);
        one.by_index.clear();
      }
    }
    expect(kept.every(({ bodies }) => bodies > CHANGES / 10)).toBe(true);
    for (const client of clients) client.close();
  }, 300_000);

  test('are sent as changes: a change of one row of many is one row', async () => {
    const namespace_id = crypto.randomUUID();
    const lobby_ids = Array.from({ length: 1_500 }, () => Bun.randomUUIDv7());
    await database.transact(async (tx) => {
      await touch(tx, [topics.lobbiesOf(namespace_id)]);
      await tx.execute(sql`
        insert into lobbies (lobby_id, game_id, namespace_id, version_id, game_mode, region, server_id,
          max_players_normal, max_players_direct, max_players_party, player_count, tags, is_closed, create_ts, changed)
        select lobby_id, gen_random_uuid(), ${namespace_id}, ${namespace_id}, 'default', 'local', gen_random_uuid(),
          8, 8, 8, 0, '{}', false, now(), 1 from unnest(${sql.param(lobby_ids)}::uuid[]) as lobby_id`);
    });
    const path = `/matchmaker/rows/${namespace_id}?order=oldest&count=200`;
    const [app] = apps;
    if (!app) throw new Error('it is open');
    const { rows, matching, watch } = await app.api.ok('GET', path);
    expect([rows.length, matching]).toEqual([200, 1_500]);
    const polling = app.api.ok('GET', `${path}&watch_index=${watch.index}`);
    await waitFor(() => app.listeners.has(topics.lobbiesOf(namespace_id)), 'the poll to wait');
    const changed_id = rows[7].lobby_id;
    await database.transact(async (tx) => {
      const changed = await touchLobby(tx, { lobby_id: changed_id, namespace_id });
      await tx.execute(sql`
        update lobbies set is_closed = true, ready_ts = now(), changed = ${changed} where lobby_id = ${changed_id}`);
    });
    const body = await polling;
    expect(body.rows).toBeUndefined();
    expect(body.changes).toEqual({
      removed: [],
      placed: [{ at: 7, row: { ...rows[7], status: 'closed', is_closed: true } }],
    });
    expect(body.summary.status).toEqual({ starting: 1_499, open: 0, closed: 1 });
  });
});

describe('rows of lobbies of a running service', () => {
  let muster: TestService;
  beforeAll(async () => {
    muster = await openTestService();
  }, 300_000);
  afterAll(() => muster[Symbol.asyncDispose]());

  test("are refused for another tenant's namespace, and for a window that is too large", async () => {
    const [game, other] = [await makeControlledGame(muster), await makeControlledGame(muster)];
    const read = async (game_id: string, query = '') => {
      const path = `/cloud/games/${game_id}/namespaces/${game.namespace_id}/matchmaker/lobbies${query}`;
      return outcomeOf(await muster.api.get(path, other.cloud_token));
    };
    expect(await read(game.game_id)).toBe('404 GAME_NOT_FOUND');
    expect(await read(other.game_id)).toBe('404 GAME_ENVIRONMENT_NOT_FOUND');
    for (const query of ['?count=201', '?from=-1', '?order=best', '?status=gone']) {
      const path = `/cloud/games/${other.game_id}/namespaces/${other.namespace_id}/matchmaker/lobbies${query}`;
      expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('400 API_BAD_QUERY_PARAMETER');
    }
  });

  test('follow players from the seat to the end of their lobby', async () => {
    const game = await makeControlledGame(muster, { max_players: 2 });
    const { game_id, namespace_id, cloud_token: token } = game;
    const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/lobbies`;
    const client = connect({ url: muster.config.public_url, token, timing: QUICK });
    let body: (Omit<Body, 'changes' | 'rows'> & { rows: Row[] }) | undefined;
    client.watchRows<Body>(path, (next) => {
      body = next;
    });
    const until = (what: string, row: object | undefined) =>
      waitFor(() => {
        const [first] = body?.rows ?? [];
        return row === undefined ? body && !first : first && Bun.deepMatch(row, first);
      }, `the row ${what}`);
    await until('to be missing', undefined);
    const { lobby_id, player_token } = await seatOf(find(muster, game));
    await until('to have a seat', { lobby_id, status: 'open', player_count: 1, connected_count: 0 });
    const server = await connectGameServer(muster, game, lobby_id);
    await server.connected(player_token);
    await until('to have a connected player', { player_count: 1, connected_count: 1 });
    await muster.api.ok('PUT', `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/closed`, {
      token,
      body: { is_closed: true },
    });
    await until('to be closed', { status: 'closed' });
    await server.disconnected(player_token);
    await until('to leave', undefined);
    expect(body?.summary).toMatchObject({ lobbies: 0, players: 0 });
    client.close();
  });
});
