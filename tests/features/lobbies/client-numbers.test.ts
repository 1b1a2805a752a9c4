import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { listClients } from '../../../src/features/lobbies/matchmaking/rounds/client-numbers-store.ts';
import {
  isConflict,
  type TakenSeats,
  takeSeats,
  takeSeatsUnderLock,
} from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { isAmong, removePlayers } from '../../../src/features/lobbies/players-store.ts';
import { after } from '../../../src/platform/clock.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { openInspector } from '../../support/inspector.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
let database: Database;
beforeAll(() => {
  database = openDatabase(muster.database_address, 4);
});
afterAll(() => database[Symbol.asyncDispose]());

/** Creates a lobby with room for many players, and functions that seat players of one client in it. */
async function makeLobby() {
  const game = await makeControlledGame(muster);
  const { lobby_id } = await seatOf(find(muster, game));
  await database.queries.execute(sql`update lobbies set max_players_direct = 10000 where lobby_id = ${lobby_id}`);
  const { namespace_id } = game;
  const propose = (players_max: number, count: number) => {
    const claim = { address: '', client: 'a', players_max, request_number: 0, ticket: null } as const;
    return Array.from({ length: count }, () => {
      return { player_id: Bun.randomUUIDv7(), lobby_id, namespace_id, kind: 'join', ...claim } as const;
    });
  };
  const moments = () => ({ now: muster.clock.now(), deadline: after(muster.clock.now(), 3_600_000) });
  return {
    namespace_id,
    /** Seats players of the client. Returns "seated", or why it is over the limit. */
    async seat(players_max: number, count = 1) {
      return outcomeOf(await takeSeats(database.queries, propose(players_max, count), moments()));
    },
    async seatExactly(players_max: number, count = 1) {
      const seats = propose(players_max, count);
      return outcomeOf(await database.transact((tx) => takeSeatsUnderLock(tx, seats, moments())));
    },
    /** The numbers of the client's seated players, in order. */
    async numbers(): Promise<(number | null)[]> {
      const rows = await database.queries.execute<{ client_number: number | null }>(sql`
        select client_number from players
        where namespace_id = ${namespace_id} and client = 'a' and remove_ts is null order by client_number`);
      return rows.map(({ client_number }) => client_number);
    },
    async leave(number: number): Promise<void> {
      const [row] = await database.queries.execute<{ player_id: string }>(sql`
        select player_id from players
        where namespace_id = ${namespace_id} and client = 'a' and client_number = ${number} and remove_ts is null`);
      const how = { reason: 'disconnected', now: muster.clock.now() } as const;
      await removePlayers(database.queries, namespace_id, isAmong([row?.player_id ?? '']), how);
    },
    /** Removes a player's number, as if an earlier release had seated the player. */
    async forgetNumber(number: number): Promise<void> {
      await database.queries.execute(sql`
        update players set client_number = default
        where namespace_id = ${namespace_id} and client = 'a' and client_number = ${number}`);
    },
  };
}

function outcomeOf({ accepting, over_limit }: TakenSeats) {
  expect(accepting).toHaveLength(over_limit.length === 0 ? 1 : 0);
  return over_limit[0] ?? 'seated';
}

const OVER = { request_number: 0, is_over_alone: true };
/** Over the limit, unless an exact search finds it is not. */
const MAYBE_OVER = { request_number: 0, is_over_alone: false };

test('client numbers: each player, also of a party, gets the lowest free number', async () => {
  const lobby = await makeLobby();
  expect(await lobby.seat(8, 5)).toBe('seated');
  await lobby.leave(2);
  await lobby.leave(4);
  expect(await lobby.seat(8, 4)).toBe('seated');
  expect(await lobby.numbers()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(await lobby.seat(8, 2)).toEqual(OVER);
  expect(await lobby.seat(8)).toBe('seated');
  expect(await lobby.seat(8)).toEqual(OVER);
});

test('client numbers: players above a lowered limit count until they leave', async () => {
  const lobby = await makeLobby();
  expect(await lobby.seat(4, 4)).toBe('seated');
  await lobby.leave(1);
  await lobby.leave(2);
  expect(await lobby.seat(2)).toEqual(OVER);
  await lobby.leave(3);
  expect(await lobby.seat(2)).toBe('seated');
  expect(await lobby.numbers()).toEqual([1, 4]);
  expect(await lobby.seat(2)).toEqual(OVER);
  expect(await lobby.seatExactly(2)).toEqual(OVER);
  await lobby.leave(4);
  expect(await lobby.seat(2)).toBe('seated');
  expect(await lobby.seat(2)).toEqual(OVER);
});

test('client numbers: players without a number, seated by an earlier release, count too', async () => {
  const lobby = await makeLobby();
  await lobby.seat(2);
  await lobby.forgetNumber(1);
  expect(await lobby.seat(2)).toBe('seated');
  expect((await lobby.numbers())[0]).toBe(1);
  expect(await lobby.seat(2)).toEqual(OVER);
});

test('client numbers: a limit in the thousands is exact, although only some numbers are searched at first', async () => {
  const lobby = await makeLobby();
  const max = 2_000;
  expect(await lobby.seat(max, max - 150)).toBe('seated');
  const one_by_one: unknown[] = [];
  for (let seated = max - 150; seated < max - 1; seated += 1) {
    const outcome = await lobby.seat(max);
    one_by_one.push(outcome);
    if (outcome !== 'seated') expect(await lobby.seatExactly(max)).toBe('seated');
  }
  expect(one_by_one).toContain('seated');
  expect(one_by_one).toContainEqual(MAYBE_OVER);
  expect(await lobby.seatExactly(max, 2)).toEqual(OVER);
  expect(await lobby.seatExactly(max)).toBe('seated');
  expect(await lobby.seat(max)).toEqual(MAYBE_OVER);
  expect(await lobby.seatExactly(max)).toEqual(OVER);
  expect(await lobby.numbers()).toEqual(Array.from({ length: max }, (_, index) => index + 1));
  // Also for a lowered limit that is still in the thousands.
  expect(await lobby.seat(max - 200)).toEqual(MAYBE_OVER);
}, 300_000);

test('client numbers: of two concurrent statements for a client one conflicts; exact ones do not', async () => {
  const lobby = await makeLobby();
  await using inspector = openInspector(muster);
  const release = await inspector.holdSeats(lobby.namespace_id);
  const waiting = [lobby.seat(8), lobby.seat(8)].map((one) => one.catch((error: unknown) => error));
  await waitFor(async () => {
    const rows = await database.queries.execute(
      sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length >= 2;
  }, 'both statements to wait');
  await release();
  const outcomes = await Promise.all(waiting);
  expect(outcomes.filter((outcome) => outcome === 'seated')).toHaveLength(1);
  expect(outcomes.filter(isConflict)).toHaveLength(1);
  await Promise.all(Array.from({ length: 7 }, () => lobby.seatExactly(8)));
  expect(await lobby.numbers()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await lobby.seatExactly(8)).toEqual(OVER);
});

describe('listClients', () => {
  const player = (client: string, request_number: number, { namespace_id = 'here', players_max = 8 } = {}) => {
    return { client, request_number, namespace_id, players_max };
  };

  test('listClients: each client of a namespace once, and the position of each player', () => {
    const players = [
      player('a', 0),
      player('b', 1),
      player('b', 1, { players_max: 5 }),
      player('a', 2),
      player('a', 3, { namespace_id: 'there' }),
      player('b', 4),
    ];
    expect(listClients(players, 0)).toMatchObject({
      client_namespace_id: ['here', 'here', 'there'],
      client: ['a', 'b', 'a'],
      client_players_max: [8, 5, 8],
      new_players: [2, 3, 1],
      client_index: [1, 2, 2, 1, 3, 2],
      nth_of_client: [1, 1, 2, 2, 1, 3],
      // Both players of the party count for each of them.
      through_request: [1, 2, 2, 2, 1, 3],
    });
  });

  test('listClients: all numbers of a client are searched, or a part of them if it may have very many players', () => {
    const rangesOf = (players_max: number, fraction: number | null) => {
      const { lowest, highest, unsearched } = listClients([player('a', 0, { players_max })], fraction);
      return [lowest[0], highest[0], unsearched[0]];
    };
    expect(rangesOf(1_004, 0.5)).toEqual([1, 2_147_483_647, 0]);
    expect(rangesOf(1_005, 0)).toEqual([1, 1_004, 1]);
    expect(rangesOf(100_000, 0.999999)).toEqual([98_996, 99_999, 98_996]);
    expect(rangesOf(100_000, null)).toEqual([1, 2_147_483_647, 0]);
  });
});
