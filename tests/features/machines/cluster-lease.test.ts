import { afterAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { ClusterLease, type ClusterMachine, type HeldCluster } from '../../../src/features/machines/cluster-lease.ts';
import { createLease } from '../../../src/features/machines/lease.ts';
import * as store from '../../../src/features/machines/store.ts';
import { NO_HOLDER, UNKNOWN_CLUSTER } from '../../../src/features/machines/tables.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import type { Feed } from '../../../src/platform/watch/feed.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DATACENTER = crypto.randomUUID();
const SHORT_MS = 400;
const LONG_MS = 3_600_000;

const muster = shareService();
const stop = new AbortController();
afterAll(() => stop.abort());

const makeCluster = (): ClusterMachine => ({ node_id: crypto.randomUUID(), name: 'games' });

/** A process that may hold a cluster, which it reaches by default. The test sends its beats. */
async function makeProcess(cluster: ClusterMachine, take_over_after_ms: number, reachesCluster = async () => true) {
  const { database } = muster;
  const node_id = crypto.randomUUID();
  const own = { node_id, datacenter_id: DATACENTER, place: node_id, host: 'here' };
  const holder = crypto.randomUUID();
  const registration = { ...own, name: own.host, holder, lost_after_ms: LONG_MS, cluster_id: cluster.node_id };
  await database.transact((tx) => store.registerMachine(tx, registration, null));
  const emitted: ServiceEvent[] = [];
  const lease = new ClusterLease({
    database,
    events: { emit: (event) => void emitted.push(event) },
    own,
    heartbeat_ms: LONG_MS,
    take_over_after_ms,
    lost_after_ms: LONG_MS,
    rest_ms: LONG_MS,
    takesServers: () => true,
    wakeHeartbeat() {},
  });
  lease.join(cluster);

  async function beat(): Promise<void> {
    const { holding } = lease;
    const asked_ms = performance.now();
    const holdings = [{ node_id, holder }, ...(holding ? [holding] : [])];
    const read = await store.writeHeartbeats(database.queries, holdings);
    lease.onHeartbeat(holding, { ...read, asked_ms, answered_ms: performance.now() });
  }

  return {
    node_id,
    beat,
    emitted,
    acquire: () => lease.acquire(cluster, { reachesCluster, signal: stop.signal }),
    /** Asks for the lease, and heartbeats until it has it. */
    async take(): Promise<HeldCluster> {
      let held: HeldCluster | undefined;
      const acquiring = lease.acquire(cluster, { reachesCluster, signal: stop.signal }).then((got) => {
        held = got;
      });
      await waitFor(async () => {
        await beat();
        await Promise.race([acquiring, Bun.sleep(10)]);
        return held !== undefined;
      }, 'the process to take the cluster');
      return held as unknown as HeldCluster;
    },
  };
}

const lockHeld = (held: HeldCluster) => muster.database.transact((tx) => held.lockHeld(tx));

/** Returns whether a process waits to take a machine over. */
async function isTakeoverWaiting(): Promise<boolean> {
  const rows = await muster.database.queries.execute(sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%"machines"%for update%'`);
  return rows.length > 0;
}

const readRow = ({ node_id }: ClusterMachine) => store.selectMachine(muster.database.queries, node_id);

describe('the lease of a cluster', () => {
  test('is of one process at a time, which may act', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, LONG_MS), await makeProcess(cluster, LONG_MS)];
    const held = await one.take();
    expect(held.mayAct()).toBe(true);
    expect(await lockHeld(held)).toEqual({ takes_servers: true });
    let has_other = false;
    void other.acquire().then(() => {
      has_other = true;
    });
    for (let round = 0; round < 3; round += 1) {
      await one.beat();
      await other.beat();
    }
    expect(has_other).toBe(false);
    expect(await readRow(cluster)).toMatchObject({ state: 'up', place: one.node_id, name: 'games, by here' });
  });

  test('is taken over once its heartbeat has stayed the same, and by then its earlier holder no longer acts', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, SHORT_MS), await makeProcess(cluster, SHORT_MS)];
    const held = await one.take();
    await other.beat();
    // The process is paused: it sends no beats.
    const taken_over = await other.take();
    expect([held.mayAct(), held.ended.aborted]).toEqual([false, true]);
    expect(await lockHeld(held)).toBeUndefined();
    expect(await lockHeld(taken_over)).toEqual({ takes_servers: true });
    expect(one.emitted.at(-1)).toMatchObject({ event: 'cluster_lost', why: 'expired' });
    expect((await readRow(cluster))?.place).toBe(other.node_id);
    await one.beat();
    expect(held.mayAct()).toBe(false);
  });

  test('ends for a holder whose heartbeat finds another holder, before its time is over', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, LONG_MS), await makeProcess(cluster, SHORT_MS)];
    const held = await one.take();
    const taken_over = await other.take();
    expect(held.mayAct()).toBe(true);
    expect(await lockHeld(held)).toBeUndefined();
    await one.beat();
    expect([held.mayAct(), held.ended.aborted]).toEqual([false, true]);
    expect(await lockHeld(taken_over)).toEqual({ takes_servers: true });
    expect(one.emitted.at(-1)).toMatchObject({ event: 'cluster_lost', why: 'taken_over' });
  });

  test('is not taken over while its holder is in a transaction that changes something', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, SHORT_MS), await makeProcess(cluster, SHORT_MS)];
    const held = await one.take();
    const taking = await muster.database.transact(async (tx) => {
      expect(await held.lockHeld(tx)).toBeDefined();
      await other.beat();
      const taking_over = other.take();
      await waitFor(isTakeoverWaiting, 'the other process to wait for the transaction');
      expect((await readRow(cluster))?.place).toBe(one.node_id);
      return { taking_over };
    });
    expect(await lockHeld(await taking.taking_over)).toEqual({ takes_servers: true });
  });

  test('has time left until another process may take it over, which is longer than its holder may act', async () => {
    const cluster = makeCluster();
    const one = await makeProcess(cluster, LONG_MS);
    const held = await one.take();
    expect(held.timeLeft()).toBeWithin(LONG_MS * 0.9, LONG_MS);
    await held.release({ has_servers: true });
    expect(held.timeLeft()).toBe(0);
  });

  test('that is offered is taken by a process that reaches the cluster, and by no other', async () => {
    const cluster = makeCluster();
    const one = await makeProcess(cluster, LONG_MS);
    const has_asked = Promise.withResolvers<void>();
    const cut_off = await makeProcess(cluster, LONG_MS, async () => {
      has_asked.resolve();
      return false;
    });
    const held = await one.take();
    void cut_off.acquire();
    await held.setOffer('prepared');
    expect([held.mayAct(), held.timeLeft(), await readRow(cluster)]).toMatchObject([true, 0, { is_offered: false }]);
    await held.setOffer('made');
    await one.beat();
    await cut_off.beat();
    await has_asked.promise;
    await cut_off.beat();
    expect(await readRow(cluster)).toMatchObject({ place: one.node_id, is_offered: true });
    expect([held.mayAct(), await lockHeld(held)]).toEqual([true, { takes_servers: true }]);
    const other = await makeProcess(cluster, LONG_MS);
    const taken_over = await other.take();
    expect([await lockHeld(held), await lockHeld(taken_over)]).toEqual([undefined, { takes_servers: true }]);
    expect(await readRow(cluster)).toMatchObject({ place: other.node_id, is_offered: false });
    await one.beat();
    expect(one.emitted.at(-1)).toMatchObject({ event: 'cluster_lost', why: 'taken_over' });
  });

  test('that is no longer offered stays with its holder', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, LONG_MS), await makeProcess(cluster, LONG_MS)];
    const held = await one.take();
    await held.setOffer('made');
    await held.setOffer('none');
    expect(held.timeLeft()).toBeGreaterThan(0);
    void other.acquire();
    await other.beat();
    await one.beat();
    await other.beat();
    expect(await readRow(cluster)).toMatchObject({ place: one.node_id, is_offered: false });
    expect(held.mayAct()).toBe(true);
  });

  test('that is released is taken at the next heartbeat', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeProcess(cluster, LONG_MS), await makeProcess(cluster, LONG_MS)];
    const held = await one.take();
    await held.release({ has_servers: true });
    expect(await readRow(cluster)).toMatchObject({ state: 'up', holder: NO_HOLDER });
    expect(held.mayAct()).toBe(false);
    expect((await other.take()).mayAct()).toBe(true);
  });

  test.each([
    [true, 'resting'],
    [false, 'stopped'],
  ] as const)('without another process and with servers (%p) leaves its machine %s', async (has_servers, state) => {
    const cluster = makeCluster();
    const one = await makeProcess(cluster, LONG_MS);
    await (await one.take()).release({ has_servers });
    expect(await readRow(cluster)).toMatchObject({ state });
    expect((await one.take()).mayAct()).toBe(true);
    expect(await readRow(cluster)).toMatchObject({ state: 'up' });
  });
});

/** The lease of a process that uses a cluster. Its loops do not run. */
async function makeUser(cluster: ClusterMachine, rest_ms = LONG_MS) {
  const { database } = muster;
  const node_id = crypto.randomUUID();
  const own = {
    node_id,
    datacenter_id: DATACENTER,
    name: 'here',
    place: node_id,
    data_directory: '',
    has_cluster: true,
  };
  const lease = createLease({
    database,
    events: { emit() {} },
    feed: { subscribe: () => () => {} } as unknown as Feed,
    own,
    lost_after_ms: LONG_MS,
    rest_ms,
    endServersOf: async () => 0,
  });
  await lease.register(undefined);
  await lease.joinCluster(cluster);
  return { lease, readCluster: async () => (await store.selectMachine(database.queries, node_id))?.cluster_id };
}

test('the machine of a cluster is not lost before another process may take it over, however short the rest is', async () => {
  const cluster = makeCluster();
  const { lease } = await makeUser(cluster, SHORT_MS);
  const acquiring = lease.cluster_lease.acquire(cluster, { reachesCluster: async () => true, signal: stop.signal });
  const now = performance.now();
  const own_row = { node_id: lease.heldIds()[0] ?? '' };
  lease.cluster_lease.onHeartbeat(undefined, {
    machines: [],
    written: new Set([own_row.node_id]),
    asked_ms: now,
    answered_ms: now,
  });
  const held = await acquiring;
  expect(held?.mayAct()).toBe(true);
  expect((await readRow(cluster))?.lost_after_ms).toBe(LONG_MS);
});

describe('processes that leave a cluster', () => {
  test('leave it to another one, but not the last of them, however many leave at a time', async () => {
    const cluster = makeCluster();
    const [one, other] = [await makeUser(cluster), await makeUser(cluster)];
    expect(await one.readCluster()).toBe(cluster.node_id);
    expect(await one.lease.prepareToLeaveCluster()).toBe(true);
    // It still serves its players, but would not take the cluster.
    expect(await one.readCluster()).toBe(UNKNOWN_CLUSTER);
    expect(await other.lease.prepareToLeaveCluster()).toBe(false);
  });
});
