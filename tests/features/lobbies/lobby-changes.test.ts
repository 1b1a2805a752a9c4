import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createRunningRows } from '../../../src/features/lobbies/developers/running-rows.ts';
import { selectRunningChanges } from '../../../src/features/lobbies/developers/running-rows-store.ts';
import { createLobbyCache } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache.ts';
import { CHANGES_MAX, selectChanged } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache-store.ts';
import { countLobby, insertLobby } from '../../../src/features/lobbies/matchmaking/new-lobbies/create-lobbies-store.ts';
import { isAmong, removePlayers, setDisconnected } from '../../../src/features/lobbies/players-store.ts';
import { selectLobby, setReady, stopLobby, touchLobby, updateLobbies } from '../../../src/features/lobbies/store.ts';
import { CHANGES_KEPT, type LobbyRow } from '../../../src/features/lobbies/tables.ts';
import { deleteLobbiesBefore } from '../../../src/features/lobbies/upkeep/retention-store.ts';
import { topics } from '../../../src/features/topics.ts';
import { after } from '../../../src/platform/clock.ts';
import { type Database, type DatabaseAddress, openDatabase, type Tx } from '../../../src/platform/database/database.ts';
import { readVersions, touch } from '../../../src/platform/watch/versions.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { countScans } from '../../support/database/table-scans.ts';
import { createBareLobbies, permitBareLobbies, takeOneEach } from '../../support/lobbies/bare-lobbies.ts';
import { NO_AVOIDED_LOBBIES } from '../../support/machines/lone-machine.ts';

let address: DatabaseAddress;
let database: Database;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  const own = opened.use(await openTestDatabase());
  address = own.address;
  database = opened.use(openDatabase(address, 4));
  await permitBareLobbies(database);
});
afterAll(() => opened.disposeAsync());

const NOW = new Date();

interface Place {
  namespace_id: string;
  lobby_id: string;
}

async function selectRunning(lobby_id: string): Promise<LobbyRow> {
  const lobby = await selectLobby(database.queries, lobby_id);
  if (!lobby) throw new Error('the lobby runs');
  return lobby;
}

async function stop(place: Place): Promise<void> {
  const how = { reason: 'removed', now: new Date(0), only_if_empty: false } as const;
  await database.transact((tx) => stopLobby(tx, place, how));
}

/** Bumps the list of a namespace as earlier releases do. Returns the version. */
async function bumpAsBefore(tx: Tx, namespace_id: string): Promise<number> {
  const list = topics.lobbiesOf(namespace_id);
  return (await touch(tx, [list])).get(list) ?? 0;
}

async function versionOf(namespace_id: string): Promise<number> {
  const list = topics.lobbiesOf(namespace_id);
  return (await readVersions(database.queries, [list])).get(list) ?? 0;
}

/** Bumps the list of a namespace many times. The lobby does not change. */
async function touchOften(place: Place, times: number): Promise<void> {
  await database.transact(async (tx) => {
    for (let time = 0; time < times; time += 1) await touchLobby(tx, place);
  });
}

/** Creates lobbies, and functions about them. */
async function makeLobbies(count = 3) {
  const namespace_id = crypto.randomUUID();
  const lobby_ids = await createBareLobbies(database, { namespace_id, count, seats: 8 });
  const [lobby_id = '', ...others] = lobby_ids;
  return { namespace_id, lobby_ids, lobby_id, others, place: { namespace_id, lobby_id } };
}

const READERS = [
  { name: 'the cache', read: selectChanged },
  { name: 'lists', read: selectRunningChanges },
];

/** Everything that changes lobbies. Each returns the lobbies that it changes. */
const WRITERS: { name: string; write(lobbies: Awaited<ReturnType<typeof makeLobbies>>): Promise<string[]> }[] = [
  {
    name: 'new seats',
    async write({ namespace_id, lobby_ids }) {
      await takeOneEach(database.queries, namespace_id, lobby_ids);
      return lobby_ids;
    },
  },
  {
    name: 'departures',
    async write({ namespace_id, lobby_id, others: [other = ''] }) {
      const players = await takeOneEach(database.queries, namespace_id, [lobby_id, other]);
      expect((await setDisconnected(database.queries, players, NOW)).size).toBe(2);
      return [lobby_id, other];
    },
  },
  {
    name: 'removed players',
    async write({ namespace_id, lobby_id, others: [other = ''] }) {
      const [player = ''] = await takeOneEach(database.queries, namespace_id, [lobby_id, other]);
      await removePlayers(database.queries, namespace_id, isAmong([player]), { reason: 'timed_out', now: NOW });
      return [lobby_id];
    },
  },
  {
    name: 'a removal of no player',
    async write({ namespace_id }) {
      await removePlayers(database.queries, namespace_id, sql`false`, { reason: 'timed_out', now: NOW });
      return [];
    },
  },
  {
    name: 'a lobby that becomes ready',
    async write({ lobby_id }) {
      await database.queries.execute(sql`update lobbies set ready_ts = null where lobby_id = ${lobby_id}`);
      const lobby = await selectRunning(lobby_id);
      const ready = { now: NOW, deadline: after(NOW, 3_600_000), ports: {} };
      expect(await database.transact((tx) => setReady(tx, lobby, ready))).toBeDefined();
      return [lobby_id];
    },
  },
  {
    name: 'reports of game servers',
    async write({ lobby_id, others: [other = ''] }) {
      const stranger = await makeLobbies(1);
      const reports = [{ lobby_id, is_closed: true }, { lobby_id: other, state: '7' }, stranger];
      expect((await updateLobbies(database.queries, reports, NOW)).size).toBe(3);
      return [lobby_id, other];
    },
  },
  {
    name: 'a new lobby',
    async write({ lobby_id }) {
      const lobby = { ...(await selectRunning(lobby_id)), lobby_id: Bun.randomUUIDv7() };
      await database.transact(async (tx) => {
        const { changed = 0 } = await countLobby(tx, lobby, [], 100);
        await insertLobby(tx, { ...lobby, changed }, []);
      });
      return [lobby.lobby_id];
    },
  },
];

describe('changes of lobbies', () => {
  describe.each(WRITERS)('by $name', ({ write }) => {
    test.each(READERS)('are read by $name', async ({ read }) => {
      const lobbies = await makeLobbies();
      const changed = await write(lobbies);
      const { namespace_id } = lobbies;
      const version = await versionOf(namespace_id);
      const read_ids = await read(database.queries, { namespace_id, after: version - 1, version });
      expect(read_ids?.map(({ lobby_id }) => lobby_id)).toEqual(changed.toSorted());
    });
  });

  describe.each(READERS)('read by $name', ({ read }) => {
    const readAfter = async (place: Place, after: number) => {
      const { namespace_id } = place;
      return await read(database.queries, { namespace_id, after, version: await versionOf(namespace_id) });
    };

    test('are of all versions in the range, as the lobbies are now', async () => {
      const { namespace_id, lobby_ids, place } = await makeLobbies();
      const before = await versionOf(namespace_id);
      for (const lobby_id of [...lobby_ids, ...lobby_ids])
        await takeOneEach(database.queries, namespace_id, [lobby_id]);
      for (const [skipped, ids] of [lobby_ids, lobby_ids, lobby_ids, lobby_ids, lobby_ids.slice(1)].entries()) {
        const seen = ids.map((lobby_id) => expect.objectContaining({ lobby_id, is_stopped: false, player_count: 2 }));
        expect(await readAfter(place, before + skipped)).toEqual(seen);
      }
    });

    test('have lobbies that have stopped, also those that were deleted since', async () => {
      const { namespace_id, lobby_id, others, place } = await makeLobbies(2);
      const [other = ''] = others;
      const before = await versionOf(namespace_id);
      await stop(place);
      await database.transact((tx) => deleteLobbiesBefore(tx, NOW));
      await stop({ namespace_id, lobby_id: other });
      expect(await readAfter(place, before)).toMatchObject([
        { lobby_id, is_stopped: true },
        { lobby_id: other, is_stopped: true },
      ]);
    });

    test('are unknown after a version that an earlier release bumped', async () => {
      const { namespace_id, lobby_id, place } = await makeLobbies();
      const before = await versionOf(namespace_id);
      await touchOften(place, 1);
      await database.transact((tx) => bumpAsBefore(tx, namespace_id));
      await touchOften(place, 1);
      expect(await readAfter(place, before)).toBeUndefined();
      expect(await readAfter(place, before + 1)).toBeUndefined();
      expect(await readAfter(place, before + 2)).toMatchObject([{ lobby_id }]);
    });

    test('are unknown if a row was deleted', async () => {
      const { namespace_id, place } = await makeLobbies();
      const before = await versionOf(namespace_id);
      await touchOften(place, 3);
      await database.queries.execute(sql`
        delete from lobby_changes where namespace_id = ${namespace_id} and version = ${before + 2}`);
      expect(await readAfter(place, before)).toBeUndefined();
      expect(await readAfter(place, before + 2)).toHaveLength(1);
    });

    test('are known for the latest versions only', async () => {
      const { namespace_id, lobby_id, place } = await makeLobbies();
      const before = await versionOf(namespace_id);
      await touchOften(place, CHANGES_KEPT);
      expect(await readAfter(place, before)).toMatchObject([{ lobby_id }]);
      await touchOften(place, 1);
      expect(await readAfter(place, before)).toBeUndefined();
      expect(await readAfter(place, before + 1)).toMatchObject([{ lobby_id }]);
      // The reader asks for an older version than the database has.
      expect(await read(database.queries, { namespace_id, after: before, version: before + 1 })).toBeUndefined();
    });

    test('are unknown if they are too many', async () => {
      const { namespace_id, place } = await makeLobbies();
      const before = await versionOf(namespace_id);
      await touchOften(place, 1);
      await database.queries.execute(sql`
        update lobby_changes set lobby_ids = array(select gen_random_uuid() from generate_series(0, ${CHANGES_MAX}::int))
        where namespace_id = ${namespace_id} and version = ${before + 1}`);
      expect(await readAfter(place, before)).toBeUndefined();
    });

    test('are found without reading all of a table', async () => {
      // Scans are counted for one connection, so all statements use the same one.
      await using single = openDatabase(address, 1);
      const { queries } = single;
      const { namespace_id, lobby_ids, place } = await makeLobbies(2_000);
      await takeOneEach(queries, namespace_id, lobby_ids);
      await touchOften(place, CHANGES_KEPT);
      await queries.execute(sql`analyze lobbies, lobby_changes`);
      await queries.execute(sql`set plan_cache_mode = force_generic_plan`);
      const count = async () => [await countScans(queries, 'lobbies'), await countScans(queries, 'lobby_changes')];
      const before = await count();
      const version = await versionOf(namespace_id);
      for (const missed of [1, 100, CHANGES_KEPT]) {
        expect(await read(queries, { namespace_id, after: version - missed, version })).toHaveLength(1);
      }
      expect(await count()).toEqual(before);
    });
  });
});

/** Both views that keep the lobbies of a namespace in memory. Each returns a function that reads the players of lobbies. */
const VIEWS = [
  {
    name: 'the lobby cache',
    open(namespace_id: string, lobby_ids: string[]) {
      const feed = { subscribe: () => () => {}, observe() {}, async [Symbol.asyncDispose]() {} };
      const cache = createLobbyCache({ database, feed, avoided: NO_AVOIDED_LOBBIES });
      const readFresh = () => cache.read(namespace_id, { is_fresh: true });
      return async () => {
        let index = await readFresh();
        if (!index) {
          await cache.load(namespace_id);
          index = await readFresh();
        }
        return lobby_ids.map((lobby_id) => index?.get(lobby_id)?.player_count);
      };
    },
  },
  {
    name: 'the rows of lobbies',
    open(namespace_id: string, lobby_ids: string[]) {
      const list = createRunningRows({ database });
      return async () => {
        const { rows } = await list.read({ namespace_id, order: 'oldest', from: 0, count: 100 });
        const counts = new Map(rows.map(({ id, text }) => [id, JSON.parse(text).player_count as number]));
        return lobby_ids.map((lobby_id) => counts.get(lobby_id));
      };
    },
  },
];

describe.each(VIEWS)('$name', ({ open }) => {
  /** Creates lobbies that the view has read, and changes by another process. */
  async function openView() {
    const { namespace_id, lobby_ids, lobby_id, place } = await makeLobbies();
    const readCounts = open(namespace_id, lobby_ids);
    expect(await readCounts()).toEqual([0, 0, 0]);
    return { namespace_id, place, readCounts, seat: () => takeOneEach(database.queries, namespace_id, [lobby_id]) };
  }

  test('has changes by another process', async () => {
    const { readCounts, seat } = await openView();
    await seat();
    await seat();
    expect(await readCounts()).toEqual([2, 0, 0]);
  });

  test('has changes by a process of an earlier release', async () => {
    const { namespace_id, place, readCounts, seat } = await openView();
    await seat();
    await database.transact(async (tx) => {
      const changed = await bumpAsBefore(tx, namespace_id);
      await tx.execute(sql`
        update lobbies set player_count = 3, changed = ${changed} where lobby_id = ${place.lobby_id}`);
    });
    expect(await readCounts()).toEqual([3, 0, 0]);
    await seat();
    expect(await readCounts()).toEqual([4, 0, 0]);
  });

  test('has changes of which nothing is recorded any more', async () => {
    const { namespace_id, place, readCounts, seat } = await openView();
    await seat();
    await database.queries.execute(sql`delete from lobby_changes where namespace_id = ${namespace_id}`);
    expect(await readCounts()).toEqual([1, 0, 0]);
    await seat();
    await touchOften(place, CHANGES_KEPT);
    expect(await readCounts()).toEqual([2, 0, 0]);
  });

  test('does not have a lobby that has stopped and was deleted', async () => {
    const { place, readCounts } = await openView();
    await stop(place);
    await database.transact((tx) => deleteLobbiesBefore(tx, NOW));
    expect(await readCounts()).toEqual([undefined, 0, 0]);
  });
});
