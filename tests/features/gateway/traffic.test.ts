import { describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { answerClassOf, answeredWithin, noTraffic } from '../../../src/features/gateway/traffic-counts.ts';
import { addTraffic, beginBatches } from '../../../src/features/gateway/traffic-store.ts';
import { createTrafficStoring } from '../../../src/features/gateway/traffic-storing.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { ECHO_PORTS, ECHO_SOURCE, echoByTcp, openUdpPlayer } from '../../support/relayed.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const SETTINGS = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN, MUSTER_RELAYS: 'all' };
const muster = shareService(SETTINGS);

const readTraffic = ({ api }: Pick<TestService, 'api'>, game: TestGame, server_id: string) =>
  api.ok('GET', `/games/${game.game_id}/environments/${game.namespace_id}/servers/${server_id}/traffic`, {
    token: game.cloud_token,
  });

describe('gateway: the traffic of a server', () => {
  test('has requests, WebSockets, bytes, and how long answers took', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const { server_id, name } = await startWebServer(muster, game);
    const nothing = { requests: 0, sockets: 0, connections: 0, received_bytes: 0, sent_bytes: 0 };
    expect(await readTraffic(muster, game, server_id)).toEqual({ open: 0, ...nothing, answer_ms: {} });
    const url = muster.config.local_url;
    const headers = { host: `${name}.${SERVERS_DOMAIN}` };
    for (let count = 0; count < 3; count += 1) {
      await (await fetch(`${url}/echo`, { method: 'POST', body: 'x'.repeat(1_000), headers })).text();
    }
    // Without a length.
    await (await fetch(`${url}/chunks`, { headers })).text();
    const player = openWebSocketPlayer({ name, url });
    await player.next(1);
    player.socket.send('y'.repeat(500));
    const [hello = ''] = await player.next(2);
    const read = await waitFor(async () => {
      const traffic = await readTraffic(muster, game, server_id);
      return traffic.open === 1 && traffic.received_bytes === 3_500 && traffic;
    }, 'the traffic to be stored');
    const sent_bytes = 3_000 + 'one two three'.length + String(hello).length + 500;
    expect(read).toMatchObject({ requests: 4, sockets: 1, connections: 0, received_bytes: 3_500, sent_bytes });
    const { p50, p95, p99 } = read.answer_ms;
    expect([p50 >= 1, p95 >= p50, p99 >= p95]).toEqual([true, true, true]);
    player.socket.close();
    await waitFor(async () => (await readTraffic(muster, game, server_id)).open === 0, 'the end of the WebSocket');
  }, 300_000);

  test('has connections of relays, with the clients of UDP', async () => {
    const game = await makeControlledGame(muster, { source: ECHO_SOURCE, ports: ECHO_PORTS });
    const { ports } = (await find(muster, game)).body;
    const path = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
    const { servers } = await muster.api.ok('GET', path, { token: game.cloud_token });
    expect(await echoByTcp(ports.plain, 'hello')).toBe('hello');
    using speaker = await openUdpPlayer(ports.voice);
    await speaker.echo('hello');
    const read = await waitFor(async () => {
      const traffic = await readTraffic(muster, game, servers[0].id);
      return traffic.connections === 2 && traffic.open === 1 && traffic;
    }, 'the traffic to be stored');
    expect(read.received_bytes).toBeGreaterThanOrEqual(10);
    expect(read.sent_bytes).toBeGreaterThanOrEqual(10);
  }, 300_000);

  test('is the sum of all machines', async () => {
    await using one = await openTestService(SETTINGS);
    const game = await makeGame(one.api, one.administrator_token);
    const { server_id, name } = await startWebServer(one, game);
    await using other = await openTestService(SETTINGS, { database_of: one });
    for (const { config } of [one, other]) {
      await (await fetch(`${config.local_url}/headers`, { headers: { host: `${name}.${SERVERS_DOMAIN}` } })).text();
    }
    await waitFor(async () => (await readTraffic(one, game, server_id)).requests === 2, 'both machines to store');
  }, 300_000);
});

describe('gateway: the counts of a machine', () => {
  /** A machine, and the counts of its processes. */
  async function openMachine(database: Database = muster.database) {
    const game = await makeGame(muster.api, muster.administrator_token);
    const { server_id } = await startWebServer(muster, game);
    const node_id = crypto.randomUUID();
    await muster.database.queries.execute(sql`
      insert into machines
      select (jsonb_populate_record(machines, jsonb_build_object('node_id', ${node_id}::text))).* from machines limit 1`);
    const setState = (state: string) =>
      muster.database.queries.execute(sql`update machines set state = ${state} where node_id = ${node_id}`);
    const start = () => {
      const traffic = createTraffic({ limits: LIMITS, bytes_a_minute: SMALL });
      const { store } = createTrafficStoring({ database, events: { emit() {} }, traffic, node_id });
      return { client: traffic.ofServer(server_id).ofClient('192.0.2.1'), store };
    };
    return { server_id, node_id, setState, start, read: () => readTraffic(muster, game, server_id) };
  }

  test('have no open connections while it is given up, and those it had when it returns', async () => {
    const machine = await openMachine();
    const { client, store } = machine.start();
    const countOpen = async () => (await machine.read()).open;
    const close = client.countOpened('sockets');
    await store();
    expect(await countOpen()).toBe(1);
    await machine.setState('lost');
    expect(await countOpen()).toBe(0);
    await machine.setState('up');
    expect(await countOpen()).toBe(1);
    close();
    await store();
    expect(await countOpen()).toBe(0);
  }, 300_000);

  test('are those of the process that began last, also while an earlier one goes on', async () => {
    const { start, read } = await openMachine();
    const replaced = start();
    await replaced.store();
    const later = start();
    await later.store();
    for (const { client, store } of [replaced, replaced, replaced, later, later]) {
      client.countReceived(client === later.client ? 1_000 : 1);
      client.countOpened('sockets');
      await store();
    }
    expect(await read()).toMatchObject({ open: 2, sockets: 2, received_bytes: 2_000 });
  }, 300_000);

  test('are added once if the answer of the database was lost', async () => {
    let is_cut = false;
    const queries = new Proxy(muster.database.queries, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          const result = value.apply(target, given);
          return is_cut ? Promise.resolve(result).then(() => Promise.reject(new Error('the answer was lost'))) : result;
        };
      },
    });
    const { read, start } = await openMachine({ ...muster.database, queries });
    const { client, store } = start();
    await store();
    const close = client.countOpened('sockets');
    client.countReceived(10);
    is_cut = true;
    await expect(store()).rejects.toThrow('the answer was lost');
    is_cut = false;
    client.countReceived(5);
    close();
    await store();
    expect(await read()).toMatchObject({ open: 0, sockets: 1, received_bytes: 15 });
  }, 300_000);

  test('are added once if the first attempt is committed while the second one waits', async () => {
    const { server_id, node_id, read } = await openMachine();
    const { database } = muster;
    await beginBatches(database.queries, node_id, 0);
    const batch = { number: 1, counted: new Map([[server_id, { ...noTraffic(), requests: 7 }]]) };
    const { repeating } = await database.transact(async (tx) => {
      await addTraffic(tx, node_id, batch);
      const repeated = addTraffic(database.queries, node_id, batch);
      await waitFor(async () => {
        const waiting = await database.queries.execute(sql`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%gateway_batches%'`);
        return waiting.length > 0;
      }, 'the second attempt to wait');
      return { repeating: repeated };
    });
    await repeating;
    expect(await read()).toMatchObject({ requests: 7 });
  }, 300_000);

  test('are added after the database lost the batch before, as by a failover', async () => {
    const { server_id, node_id, read } = await openMachine();
    const { queries } = muster.database;
    await beginBatches(queries, node_id, 0);
    const counted = new Map([[server_id, { ...noTraffic(), requests: 7 }]]);
    await addTraffic(queries, node_id, { number: 2, counted });
    await addTraffic(queries, node_id, { number: 1, counted });
    expect(await read()).toMatchObject({ requests: 7 });
  });

  test('of a process that was killed have no open connections once the next one counts', async () => {
    const { read, start } = await openMachine();
    const [killed, next] = [start(), start()];
    killed.client.countOpened('sockets');
    await killed.store();
    killed.client.countOpened('sockets');
    await next.store();
    expect(await read()).toMatchObject({ open: 0, sockets: 1 });
    // The database gets its last counts late.
    await killed.store();
    expect(await read()).toMatchObject({ open: 0, sockets: 1 });
    next.client.countOpened('sockets');
    await next.store();
    expect(await read()).toMatchObject({ open: 1, sockets: 2 });
  }, 300_000);
});

const KIB = 1_024;
const LIMITS = { is_on: true, scale: 1 };
const SMALL = { of_address: 2 * KIB, of_server: 16 * KIB };

describe('gateway: limits of bytes', () => {
  test('of an address and of a server, in both directions', () => {
    const server = createTraffic({ limits: LIMITS, bytes_a_minute: SMALL }).ofServer('a server');
    const client = server.ofClient('192.0.2.1');
    expect([client.countReceived(KIB), client.countSent(KIB), client.is_over_limit]).toEqual([true, true, false]);
    expect([client.countReceived(1), client.is_over_limit]).toEqual([false, true]);
    // One address has many clients.
    expect(server.ofClient('192.0.2.1').is_over_limit).toBe(true);
    expect(server.ofClient('192.0.2.2').is_over_limit).toBe(false);
    for (let number = 3; number < 10; number += 1) server.ofClient(`192.0.2.${number}`).countSent(2 * KIB);
    expect(server.ofClient('192.0.2.99').is_over_limit).toBe(true);
  });

  test('of a text count its bytes in UTF-8', async () => {
    await using one = await openTestService(SETTINGS);
    const game = await makeGame(one.api, one.administrator_token);
    const { server_id, name } = await startWebServer(one, game);
    using player = openWebSocketPlayer({ name, url: one.config.local_url });
    await player.next(1);
    player.socket.send('日本語');
    await player.next(2);
    const isCounted = async () => (await readTraffic(one, game, server_id)).received_bytes === 9;
    await waitFor(isCounted, 'the bytes of the text');
  }, 300_000);

  test('end a WebSocket, and refuse requests until a minute is over', async () => {
    await using one = await openTestService(SETTINGS);
    const game = await makeGame(one.api, one.administrator_token);
    const { name } = await startWebServer(one, game);
    const limits = { MUSTER_GATEWAY_ADDRESS_MINUTE_MIB: '1' };
    const small = { ...SETTINGS, ...limits, MUSTER_LIMITS_SCALE: '1' };
    await using other = await openTestService(small, { database_of: one });
    const url = other.config.local_url;
    using player = openWebSocketPlayer({ name, url });
    await player.next(1);
    player.socket.send('large');
    expect(await player.closed).toEqual({ code: 1008, reason: 'too many bytes in a minute' });
    const refused = await fetch(url, { headers: { host: `${name}.${SERVERS_DOMAIN}` } });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
    expect(await refused.json()).toMatchObject({ code: 'GATEWAY_TOO_MANY_BYTES' });
  }, 300_000);
});

test('gateway: times of answers are rounded up to classes', () => {
  const { answers } = noTraffic();
  expect(answeredWithin(answers, 0.5)).toBeUndefined();
  for (const after_ms of [0.4, 0.5, 3, 4, 40, 1e9]) {
    const answer_class = answerClassOf(after_ms);
    answers[answer_class] = (answers[answer_class] ?? 0) + 1;
  }
  expect([0.1, 0.5, 0.6, 0.8, 0.99].map((share) => answeredWithin(answers, share))).toEqual([1, 5, 5, 50, 120_000]);
});
