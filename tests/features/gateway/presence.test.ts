import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createPresence } from '../../../src/features/gateway/presence.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { Api } from '../../support/api.ts';
import { lockLobby } from '../../support/database/lobby-locks.ts';
import type { TestGame } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, WEB_SERVER } from '../../support/gateway.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { openRestartableService } from '../../support/restart.ts';
import { openTestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const SETTINGS = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN };
/** A game whose server makes no calls to Muster, and accepts every WebSocket. */
const UNMODIFIED = {
  source: WEB_SERVER,
  ports: { web: { port: 80, protocol: 'http', presence: 'gateway' } },
  game_modes: { default: { max_players: 2 } },
};

const muster = shareService(SETTINGS);
let game: TestGame;
beforeAll(async () => {
  game = await makeControlledGame(muster, UNMODIFIED);
}, 300_000);

/** Gets a seat, and returns its token with the name of the port. */
async function takeSeat(service: { api: Api } = muster, its_game = game) {
  const { status, body } = await find(service, its_game);
  expect(status).toBe(200);
  const name: string = body.ports.web.hostname.replace(`.${SERVERS_DOMAIN}`, '');
  return { name, token: body.player.token as string, lobby_id: body.lobby.lobby_id as string };
}

const play = ({ name, token }: { name: string; token?: string }, url = muster.config.local_url, path = '/socket') =>
  openWebSocketPlayer({ name, url, path: `${path}?a=1${token === undefined ? '' : `&player_token=${token}`}` });

/** Takes the seat of the first player of a lobby. */
async function kickFirst({ lobby_id }: { lobby_id: string }, { game_id, namespace_id, cloud_token: token }: TestGame) {
  const lobby = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/lobbies/${lobby_id}`;
  const [player] = (await muster.api.ok('GET', lobby, { token })).lobby.players;
  const path = `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/players/${player.player_id}`;
  expect((await muster.api.call('DELETE', path, { token })).body).toEqual({ did_remove: true });
}

/** Returns how many players have connected to a lobby. */
async function countConnected({ lobby_id }: { lobby_id: string }, service: { api: Api } = muster, its_game = game) {
  const { lobbies } = await service.api.ok('GET', '/matchmaker/lobbies/list', { token: its_game.public_token });
  const found = lobbies.find((lobby: { lobby_id: string }) => lobby.lobby_id === lobby_id);
  return found?.total_player_count;
}

const makeId = (): string => crypto.randomUUID();

test('gateway: departures that cannot be reported delay no others', async () => {
  // More than are reported at one time.
  const [stuck, others] = [Array.from({ length: 5 }, makeId), Array.from({ length: 5 }, makeId)];
  const left = new Set<string>();
  const presence = createPresence({
    database: muster.database,
    events: { emit() {} },
    lobbies: {
      async reportConnectFromGateway(_, player_id, { mayReplace }) {
        await mayReplace(player_id);
        return player_id;
      },
      async reportLeaveFromGateway(player_id) {
        if (stuck.includes(player_id)) throw new Error('it cannot be reported');
        left.add(player_id);
      },
    },
    machines: { withoutProcess: () => [] },
    node_id: crypto.randomUUID(),
  });
  for (const player_id of [...stuck, ...others]) {
    (await presence.admit(crypto.randomUUID(), player_id)).end({ may_come_back: false });
  }
  const stop = new AbortController();
  const reporting = presence.startReporting(stop.signal);
  await waitFor(() => others.every((player_id) => left.has(player_id)), 'the other departures to be reported');
  stop.abort();
  await reporting.stopped;
});

describe('gateway: a connection that a lost machine left', () => {
  /** Adds a machine that runs. */
  async function addMachine(): Promise<string> {
    const node_id = makeId();
    await muster.database.queries.execute(sql`
      insert into machines
      select (jsonb_populate_record(machines, jsonb_build_object('node_id', ${node_id}::text))).* from machines limit 1`);
    return node_id;
  }

  const listRows = (player_id: string) =>
    muster.database.queries.execute(sql`select * from gateway_connections where player_id = ${player_id}`);

  test('is reported by one of the others, so none takes the seat of a player who is back', async () => {
    const lost = makeId();
    const player_id = makeId();
    await muster.database.queries.execute(sql`
      insert into gateway_connections (player_id, connection_id, node_id) values (${player_id}, ${makeId()}, ${lost})`);
    const reports: string[] = [];
    const startMachine = (node_id: string) => {
      const stop = new AbortController();
      const presence = createPresence({
        database: muster.database,
        events: { emit() {} },
        lobbies: {
          reportConnectFromGateway: async () => player_id,
          reportLeaveFromGateway: async () => void reports.push(node_id),
        },
        machines: { withoutProcess: () => [lost] },
        node_id,
      });
      const { stopped } = presence.startReporting(stop.signal);
      return async () => {
        stop.abort();
        await stopped;
      };
    };
    const node_ids = [await addMachine(), await addMachine()];
    const countBlocked = async () => {
      const blocked = sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%gateway_connections%'`;
      return (await muster.database.queries.execute(blocked)).length;
    };
    // Both have read the connection before either takes it over.
    const stopAll = await muster.database.transact(async (tx) => {
      await tx.execute(sql`select from gateway_connections where player_id = ${player_id} for update`);
      const stops = node_ids.map(startMachine);
      await waitFor(async () => (await countBlocked()) === 2, 'both to report the end of the connection');
      return async () => await Promise.all(stops.map((stop) => stop()));
    });
    await stopAll();
    expect(reports).toHaveLength(1);
    expect(await listRows(player_id)).toHaveLength(0);
  });
});

test('gateway: a refused player gets the refusal although its connection cannot be deleted, which happens later', async () => {
  const player_id = makeId();
  let leaves = 0;
  let is_failing = true;
  const { database } = muster;
  const queries = new Proxy(database.queries, {
    get(target, name: keyof typeof database.queries) {
      if (name === 'delete' && is_failing) throw new Error('the database is unavailable');
      return target[name].bind(target);
    },
  });
  const presence = createPresence({
    database: { ...database, queries },
    events: { emit() {} },
    lobbies: {
      async reportConnectFromGateway(_, token, { mayReplace }) {
        await mayReplace(token);
        throw new ServiceError('MATCHMAKER_PLAYER_REMOVED', {});
      },
      async reportLeaveFromGateway() {
        leaves += 1;
      },
    },
    machines: { withoutProcess: () => [] },
    node_id: makeId(),
  });
  const { code } = await rejectionOf(ServiceError, presence.admit(makeId(), player_id));
  expect(code).toBe('MATCHMAKER_PLAYER_REMOVED');
  is_failing = false;
  await presence.reportNow();
  const rows = await database.queries.execute(sql`select from gateway_connections where player_id = ${player_id}`);
  expect([rows.length, leaves]).toEqual([0, 0]);
});

test('gateway: departures from a lobby that another program has locked delay no others, and come once it is unlocked', async () => {
  const crowded = await makeControlledGame(muster, { ...UNMODIFIED, game_modes: { default: { max_players: 8 } } });
  // More than are reported at one time.
  const seats = await Array.fromAsync({ length: 6 }, () => takeSeat(muster, crowded));
  const stuck = seats.map((seat) => play(seat));
  for (const player of stuck) await player.next(1);
  const [locked] = seats;
  if (!locked) throw new Error('there are seats');
  const other = await takeSeat();
  const before = await countConnected(other);
  using leaves = play(other);
  await leaves.next(1);
  {
    await using _ = await lockLobby(muster.database, locked.lobby_id);
    for (const { socket } of stuck) socket.close();
    const isTried = () =>
      muster.events.some(
        ({ event, ...more }) => event === 'loop_failed' && Object.values(more).includes('gateway-presence'),
      );
    await waitFor(isTried, 'the departures to be tried');
    leaves.socket.close();
    // Here and below: without players, the lobby may have ended already.
    await waitFor(async () => ((await countConnected(other)) ?? 0) === before, 'the other departure');
    expect(await countConnected(locked, muster, crowded)).toBe(6);
  }
  await waitFor(async () => ((await countConnected(locked, muster, crowded)) ?? 0) === 0, 'the departures');
});

describe('gateway: at a port with presence', () => {
  test('a lobby is ready as soon as its server answers, without a call of the server; http requests are refused', async () => {
    const seat = await takeSeat();
    const answer = await fetch(`${muster.config.local_url}/headers`, {
      headers: { host: `${seat.name}.${SERVERS_DOMAIN}` },
    });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([400, 'GATEWAY_SOCKET_REQUIRED']);
    using player = play(seat);
    await player.next(1);
  });

  test('a player without a valid token does not reach the server', async () => {
    const { name } = await takeSeat();
    const other_game = await makeControlledGame(muster, UNMODIFIED);
    const { token: other_token } = await takeSeat(muster, other_game);
    for (const token of [undefined, '', 'no-token', other_token]) {
      using player = play({ name, ...(token !== undefined && { token }) });
      expect(await player.opened).toBe(false);
    }
  }, 300_000);

  test('a player holds the seat while the WebSocket is open, and frees it by closing', async () => {
    const seat = await takeSeat();
    const before = await countConnected(seat);
    const player = play(seat);
    await player.next(1);
    expect(await countConnected(seat)).toBe(before + 1);
    player.socket.close();
    await waitFor(async () => ((await countConnected(seat)) ?? 0) === before, 'the seat to be free');
    using again = play(seat);
    expect(await again.opened).toBe(false);
  });

  const COMES_BACK: [when: string, end: (player: ReturnType<typeof play>) => void][] = [
    ['whose browser leaves or reloads the page', ({ socket }) => socket.close(1001, '')],
    ['whose game server drops the connection', ({ socket }) => socket.send('drop')],
  ];
  test.each(COMES_BACK)('a player %s can connect again with the same token', async (_, end) => {
    const seat = await takeSeat();
    const before = await countConnected(seat);
    const player = play(seat);
    await player.next(1);
    end(player);
    await player.closed;
    await waitFor(
      async () => ((await countConnected(seat)) ?? 0) === before,
      'the end of the connection to be recorded',
    );
    using again = play(seat);
    await again.next(1);
    expect(await countConnected(seat)).toBe(before + 1);
  });

  test('a kick closes the connection of the player, and of no other', async () => {
    const own = await makeControlledGame(muster, UNMODIFIED);
    const [first, second] = [await takeSeat(muster, own), await takeSeat(muster, own)];
    using kicked = play(first);
    using stays = play(second);
    await kicked.next(1);
    await stays.next(1);
    await kickFirst(first, own);
    expect(await kicked.closed).toEqual({ code: 4_403, reason: 'the player was kicked' });
    expect(await countConnected(second, muster, own)).toBe(1);
    expect(stays.socket.readyState).toBe(WebSocket.OPEN);
    using again = play(first);
    expect(await again.opened).toBe(false);
  }, 300_000);

  test('the server gets the id of the player, and no token', async () => {
    const { name, token } = await takeSeat();
    using player = openWebSocketPlayer({
      name,
      url: muster.config.local_url,
      path: '/echo-handshake?x=1',
      protocols: [`bearer.${token}`],
      more_headers: { 'muster-player-id': 'another player', muster_player_id: 'another player' },
    });
    expect(await player.opened).toBe(true);
    expect(player.socket.protocol).toBe(`bearer.${token}`);
    const { headers, path } = JSON.parse(String((await player.next(1))[0]));
    expect(path).toBe('/echo-handshake?x=1');
    expect(headers['muster-player-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers).not.toHaveProperty('muster_player_id');
    expect(JSON.stringify(headers)).not.toContain(token);
  });

  test('a new connection of a player replaces the earlier one, and keeps the seat', async () => {
    const seat = await takeSeat();
    using first = play(seat);
    await first.next(1);
    const seated = await countConnected(seat);
    using second = play(seat);
    await second.next(1);
    expect(await first.closed).toEqual({ code: 4409, reason: 'the player has connected again' });
    expect(await countConnected(seat)).toBe(seated);
    second.socket.send('still here');
    expect((await second.next(2)).at(-1)).toBe('still here');
  });

  test('of two WebSockets that open at the same time with one token, one stays, holds the seat, and can be kicked', async () => {
    const own = await makeControlledGame(muster, UNMODIFIED);
    const seat = await takeSeat(muster, own);
    const both = [1, 2].map(() => play(seat, muster.config.local_url, '/paired'));
    for (const player of both) await player.opened;
    const first_closed = Promise.race(both.map(async ({ closed }, index) => ({ index, ...(await closed) })));
    const { index, code } = await first_closed;
    expect(code).toBe(4_409);
    const stays = both[1 - index];
    stays?.socket.send('still here');
    await waitFor(() => stays?.frames.includes('still here'), 'the echo');
    expect(await countConnected(seat, muster, own)).toBe(1);
    await kickFirst(seat, own);
    expect(await stays?.closed).toEqual({ code: 4_403, reason: 'the player was kicked' });
  }, 300_000);

  test('a token that is tried at the server of another lobby leaves the connection and its seat as they are', async () => {
    const own = await makeControlledGame(muster, { ...UNMODIFIED, game_modes: { default: { max_players: 1 } } });
    const [seat, other] = [await takeSeat(muster, own), await takeSeat(muster, own)];
    expect(other.name).not.toBe(seat.name);
    using player = play(seat);
    await player.next(1);
    using elsewhere = play({ name: other.name, token: seat.token });
    expect(await elsewhere.opened).toBe(false);
    player.socket.send('still here');
    expect((await player.next(2)).at(-1)).toBe('still here');
    player.socket.close();
    await waitFor(async () => (await countConnected(seat, muster, own)) !== 1, 'the seat to be free');
  }, 300_000);
});

test('gateway: a player who comes back while the end of the last connection is being reported waits for it', async () => {
  await using restarted = await openRestartableService(SETTINGS);
  await using database = openDatabase(restarted.database_address, 1);
  const its_game = await makeControlledGame(restarted, UNMODIFIED);
  const url = restarted.config.local_url;
  const seat = await takeSeat(restarted, its_game);
  using first = play(seat, url);
  await first.next(1);
  // Another machine reports the end: it has marked the connection, has kept the seat, and has not deleted the connection.
  await database.queries.execute(sql`update gateway_connections set is_ended = true`);
  await database.queries.execute(
    sql`update players set connect_ts = null, seat_deadline_ts = now() + '30 seconds' where connect_ts is not null`,
  );
  using refused = play(seat, url);
  expect(await refused.opened).toBe(false);
  using back = play(seat, url);
  await database.queries.execute(sql`delete from gateway_connections`);
  await back.next(1);
  back.socket.send('here again');
  expect((await back.next(2)).at(-1)).toBe('here again');
  expect(await countConnected(seat, restarted, its_game)).toBe(1);
}, 300_000);

describe('gateway: a connection that other machines gave up while this one was not reachable', () => {
  const CASES: [name: string, statement: string][] = [
    ['and have reported', 'delete from gateway_connections'],
    ['and report', 'update gateway_connections set is_ended = true, node_id = gen_random_uuid()'],
  ];
  test.each(CASES)('%s is closed with 1012, so that the player connects again', async (_, statement) => {
    const own = await makeControlledGame(muster, UNMODIFIED);
    const seat = await takeSeat(muster, own);
    using player = play(seat);
    await player.next(1);
    await muster.database.queries.execute(
      sql`${sql.raw(statement)} where player_id in (select player_id from players where lobby_id = ${seat.lobby_id})`,
    );
    expect(await player.closed).toEqual({
      code: 1_012,
      reason: 'the connection was given up while this machine was not reachable',
    });
  });

  test('keeps its seat, although the machine that gave it up has not reported that', async () => {
    const own = await makeControlledGame(muster, UNMODIFIED);
    const seat = await takeSeat(muster, own);
    using player = play(seat);
    await player.next(1);
    await muster.database.queries.execute(sql`
      update gateway_connections set is_ended = true, node_id = gen_random_uuid()
      where player_id in (select player_id from players where lobby_id = ${seat.lobby_id})`);
    await player.closed;
    await waitFor(async () => (await countConnected(seat, muster, own)) === 0, 'the end to be reported');
    using back = play(seat);
    await back.next(1);
    expect(await countConnected(seat, muster, own)).toBe(1);
  });
});

test('gateway: a new connection of a player by another machine replaces the earlier one, and keeps the seat', async () => {
  await using one = await openTestService(SETTINGS);
  const own = await makeControlledGame(one, UNMODIFIED);
  const seat = await takeSeat(one, own);
  await using other = await openTestService(SETTINGS, { database_of: one });
  using first = play(seat, one.config.local_url);
  await first.next(1);
  using second = play(seat, other.config.local_url);
  await second.next(1);
  expect(await first.closed).toEqual({ code: 4_409, reason: 'the player has connected again' });
  using third = play(seat, one.config.local_url);
  await third.next(1);
  expect((await second.closed).code).toBe(4_409);
  expect(await countConnected(seat, one, own)).toBe(1);
  third.socket.send('still here');
  expect((await third.next(2)).at(-1)).toBe('still here');
}, 300_000);

test('gateway: what a machine that stops cannot report, another machine reports', async () => {
  await using one = await openTestService(SETTINGS);
  await using database = openDatabase(one.database_address, 1);
  const own = await makeControlledGame(one, UNMODIFIED);
  const seat = await takeSeat(one, own);
  const other = await openTestService(SETTINGS, { database_of: one });
  using player = play(seat, other.config.local_url);
  await player.next(1);
  const run = (statement: string) => database.queries.execute(sql.raw(statement));
  await run(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`);
  await run('create trigger refuse before update on gateway_connections for each row execute function refuse()');
  await expect(other[Symbol.asyncDispose]()).rejects.toThrow();
  await run('drop trigger refuse on gateway_connections');
  await waitFor(async () => (await countConnected(seat, one, own)) === 0, 'the departure to be reported');
}, 300_000);

test('gateway: after a restart, players may connect again with their tokens, and the others lose their seats', async () => {
  await using restarted = await openRestartableService(SETTINGS);
  const its_game = await makeControlledGame(restarted, UNMODIFIED);
  const url = restarted.config.local_url;
  const [one, other] = [await takeSeat(restarted, its_game), await takeSeat(restarted, its_game)];
  const players = [play(one, url), play(other, url)];
  for (const player of players) await player.next(1);
  await restarted.close();
  for (const { closed } of players) expect((await closed).code).toBe(1012);
  await restarted.open();
  using back = play(one, url);
  await back.next(1);
  expect(await countConnected(one, restarted, its_game)).toBe(1);
  const join = () => find(restarted, its_game, { prevent_auto_create_lobby: true });
  expect((await join()).status).not.toBe(200);
  restarted.clock.advance(31_000);
  await waitFor(async () => (await join()).status === 200, "the other player's seat to be free");
  back.socket.send('still here');
  expect((await back.next(2)).at(-1)).toBe('still here');
}, 300_000);

describe('gateway: a start after a crash reports the connections of the earlier process', () => {
  /** Records a connection as an earlier process of this machine left it. */
  const LEFT = sql`
    insert into gateway_connections (player_id, connection_id, node_id, is_ended)
    select gen_random_uuid(), gen_random_uuid(), node_id, number % 2 = 0
    from generate_series(1, 2500) as number cross join (select node_id from gateway_connections limit 1) as own`;

  test('all of them, except those of players who have connected again', async () => {
    await using restarted = await openRestartableService(SETTINGS);
    await using database = openDatabase(restarted.database_address, 1);
    const its_game = await makeControlledGame(restarted, UNMODIFIED);
    const url = restarted.config.local_url;
    const seat = await takeSeat(restarted, its_game);
    const before = play(seat, url);
    await before.next(1);
    await database.queries.execute(LEFT);
    await restarted.close();
    await restarted.open();
    using back = play(seat, url);
    await back.next(1);
    const count = async () => (await database.queries.execute(sql`select from gateway_connections`)).length;
    await waitFor(async () => (await count()) === 1, 'all others to be reported');
    restarted.clock.advance(31_000);
    expect(await countConnected(seat, restarted, its_game)).toBe(1);
    back.socket.send('still here');
    expect((await back.next(2)).at(-1)).toBe('still here');
  }, 300_000);

  // The row is written before the player counts as connected, marked before the seat is kept, and deleted after that.
  for (const is_ended of [false, true]) {
    test(`a crash ${is_ended ? 'while it is reported' : 'right after it began'} costs no seat for longer than 30 s`, async () => {
      await using restarted = await openRestartableService(SETTINGS);
      await using database = openDatabase(restarted.database_address, 1);
      const its_game = await makeControlledGame(restarted, UNMODIFIED);
      const seat = await takeSeat(restarted, its_game);
      using player = play(seat, restarted.config.local_url);
      await player.next(1);
      const rows = await database.queries.execute(sql`select * from gateway_connections`);
      await restarted.close();
      const [{ player_id, connection_id, node_id } = {}] = rows;
      await database.queries.execute(sql`
        insert into gateway_connections (player_id, connection_id, node_id, is_ended)
        values (${player_id}, ${connection_id}, ${node_id}, ${is_ended})`);
      await database.queries.execute(sql`update players set connect_ts = now(), seat_deadline_ts = now() + '1 hour'`);
      await restarted.open();
      await waitFor(async () => (await countConnected(seat, restarted, its_game)) === 0, 'the report');
      restarted.clock.advance(31_000);
      await waitFor(
        async () => (await countConnected(seat, restarted, its_game)) === undefined,
        'the lobby to end without players',
      );
    }, 300_000);
  }
});
