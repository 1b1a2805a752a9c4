import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { keepSeat, selectPlayer, setConnected } from '../../../src/features/lobbies/players-store.ts';
import { createNamespaceSteps } from '../../../src/features/lobbies/upkeep/namespace-steps.ts';
import { checkSeats } from '../../../src/features/lobbies/upkeep/seat-checks.ts';
import { after, type Clock } from '../../../src/platform/clock.ts';
import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { createFixedClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { lockLobby } from '../../support/database/lobby-locks.ts';
import { createBareLobbies, permitBareLobbies } from '../../support/lobbies/bare-lobbies.ts';

const SEAT_MS = 120_000;
const PLAYER_MS = 3_600_000;
const SILENT = { emit() {} };

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
let database: Database;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
  database = opened.use(openDatabase(address, 4));
  await permitBareLobbies(database);
});
afterAll(() => opened.disposeAsync());

/** A lobby, by default with a clock and a namespace of its own. */
async function openLobby({
  clock = createFixedClock(new Date(Date.now() + 1_000)),
  namespace_id = crypto.randomUUID() as string,
} = {}) {
  const [lobby_id = ''] = await createBareLobbies(database, { namespace_id, seats: 8 });
  const times = { seat_timeout_ms: SEAT_MS, player_timeout_ms: PLAYER_MS };
  return {
    lobby_id,
    clock,
    /** Checks the lobbies of the database, by default with the clock of this one. */
    check: (change: { clock?: Clock; seat_timeout_ms?: number } = {}) =>
      checkSeats({ database, clock, events: SILENT, steps: createNamespaceSteps(SILENT), ...times, ...change }),
    /** Takes a seat. Returns the id of its player. */
    async takeSeat(): Promise<string> {
      const player_id = Bun.randomUUIDv7();
      const client = { address: '', client: player_id, players_max: 1, request_number: 0, ticket: null };
      const now = clock.now();
      const seat = { player_id, lobby_id, namespace_id, kind: 'join', ...client } as const;
      await takeSeats(database.queries, [seat], { now, deadline: after(now, SEAT_MS) });
      return player_id;
    },
    connect: (player_id: string) => setConnected(database.queries, [{ player_id, lobby_id }], clock.now()),
    async keep(player_id: string, milliseconds: number): Promise<void> {
      const player = await selectPlayer(database.queries, player_id);
      if (player) await keepSeat(database.queries, player, after(clock.now(), milliseconds));
    },
    /** Returns the milliseconds until the next check. */
    async timeUntilCheck(): Promise<number> {
      const [row] = await database.queries.execute<{ seats_check_ts: string }>(sql`
        select seats_check_ts from lobbies where lobby_id = ${lobby_id}`);
      return new Date(row?.seats_check_ts ?? 0).getTime() - clock.now().getTime();
    },
    /** Returns why the seats of the lobby ended, in the order in which they were taken; null for a seat that did not. */
    async endReasons(): Promise<(string | null)[]> {
      const rows = await database.queries.execute<{ remove_reason: string | null }>(sql`
        select remove_reason from players where lobby_id = ${lobby_id} order by create_ts, player_id`);
      return rows.map(({ remove_reason }) => remove_reason);
    },
  };
}

describe('seat checks: the next check of a lobby comes', () => {
  test('after the time of a new seat, so that a seat taken meanwhile ends at its deadline', async () => {
    const lobby = await openLobby();
    await lobby.check();
    expect(await lobby.timeUntilCheck()).toBe(SEAT_MS);
    lobby.clock.advance(1_000);
    await lobby.takeSeat();
    expect(await lobby.timeUntilCheck()).toBe(SEAT_MS - 1_000);
    lobby.clock.advance(SEAT_MS - 1_000);
    expect(await lobby.check()).toBe(0);
    expect(await lobby.timeUntilCheck()).toBe(1_000);
    lobby.clock.advance(1_000);
    expect(await lobby.check()).toBe(1);
    expect(await lobby.endReasons()).toEqual(['seat_expired']);
  });

  test('when a connected player has had a seat for the longest time', async () => {
    const lobby = await openLobby();
    await lobby.connect(await lobby.takeSeat());
    lobby.clock.advance(PLAYER_MS - 1_000);
    await lobby.check();
    expect(await lobby.timeUntilCheck()).toBe(1_000);
    lobby.clock.advance(1_000);
    expect(await lobby.check()).toBe(1);
    expect(await lobby.endReasons()).toEqual(['timed_out']);
  });

  test('when a seat ends that is kept for a short time', async () => {
    const lobby = await openLobby();
    const player_id = await lobby.takeSeat();
    await lobby.connect(player_id);
    await lobby.check();
    await lobby.keep(player_id, 5_000);
    expect(await lobby.timeUntilCheck()).toBe(5_000);
    lobby.clock.advance(5_000);
    expect(await lobby.check()).toBe(1);
    expect(await lobby.endReasons()).toEqual(['seat_expired']);
  });

  test('not later if a seat is kept for longer', async () => {
    const lobby = await openLobby();
    const player_id = await lobby.takeSeat();
    await lobby.connect(player_id);
    await lobby.takeSeat();
    await lobby.check();
    await lobby.keep(player_id, 10 * SEAT_MS);
    lobby.clock.advance(SEAT_MS);
    expect(await lobby.check()).toBe(1);
    expect(await lobby.endReasons()).toEqual([null, 'seat_expired']);
  });
});

test('seat checks: a shorter seat timeout after a restart holds for lobbies whose check was scheduled before', async () => {
  const lobby = await openLobby();
  await lobby.check();
  expect(await lobby.timeUntilCheck()).toBe(SEAT_MS);
  await lobby.check({ seat_timeout_ms: 1_000 });
  expect(await lobby.timeUntilCheck()).toBe(1_000);
  await lobby.check();
  expect(await lobby.timeUntilCheck()).toBe(1_000);
});

test('seat checks: a process whose clock is ahead does not keep the others from removing overdue seats', async () => {
  const lobby = await openLobby();
  await lobby.check({ clock: createFixedClock(after(lobby.clock.now(), PLAYER_MS)) });
  await lobby.takeSeat();
  lobby.clock.advance(SEAT_MS);
  expect(await lobby.check()).toBe(1);
  expect(await lobby.endReasons()).toEqual(['seat_expired']);
  expect(await lobby.timeUntilCheck()).toBe(SEAT_MS);
});

test('seat checks: a check does not wait for a locked lobby, which stays due', async () => {
  const lobby = await openLobby();
  {
    await using _ = await lockLobby(database, lobby.lobby_id);
    await lobby.check();
  }
  expect(await lobby.timeUntilCheck()).toBeLessThanOrEqual(0);
  await lobby.check();
  expect(await lobby.timeUntilCheck()).toBe(SEAT_MS);
});

test('seat checks: overdue seats of a locked lobby end once it is unlocked, those of others in its namespace at once', async () => {
  const clock = createFixedClock(new Date(Date.now() + 1_000));
  const namespace_id = crypto.randomUUID();
  const [locked, other] = [await openLobby({ clock, namespace_id }), await openLobby({ clock, namespace_id })];
  for (const lobby of [locked, other]) await lobby.takeSeat();
  await locked.check();
  clock.advance(SEAT_MS);
  {
    await using _ = await lockLobby(database, locked.lobby_id);
    expect(await locked.check()).toBe(1);
    expect([await locked.endReasons(), await other.endReasons()]).toEqual([[null], ['seat_expired']]);
  }
  expect(await locked.check()).toBe(1);
  expect(await locked.endReasons()).toEqual(['seat_expired']);
});

test('setConnected: the update of a player is a HOT update, without new index entries', async () => {
  const lobby = await openLobby();
  const player_id = await lobby.takeSeat();
  // PostgreSQL also counts the updates that its connection made shortly before.
  await using fresh = openDatabase(address, 1);
  const updates = await fresh.transact(async (tx) => {
    await setConnected(tx, [{ player_id, lobby_id: lobby.lobby_id }], lobby.clock.now());
    const [row] = await tx.execute<{ all: number; hot: number }>(sql`
      select pg_stat_get_xact_tuples_updated('players'::regclass)::int as all,
        pg_stat_get_xact_tuples_hot_updated('players'::regclass)::int as hot`);
    return row;
  });
  expect(updates).toEqual({ all: 1, hot: 1 });
});
