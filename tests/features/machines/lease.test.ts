import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import * as store from '../../../src/features/machines/store.ts';
import { machineIdOf } from '../../support/machines/machines.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const BEATS = 5;

const muster = shareService({ MUSTER_MACHINE_LOST_MS: '1000' });

/** Returns when the statement began that waits to declare a machine lost; undefined if none waits. */
async function waitsSince(): Promise<string | undefined> {
  const [row] = await muster.database.queries.execute<{ since: string }>(sql`
    select query_start::text as since from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%"machines"%for update%'`);
  return row?.since;
}

test('lease: a machine that cannot be declared lost yet delays neither the heartbeat nor the end of others', async () => {
  const own_id = await machineIdOf(muster.config.data_directory);
  const beatOf = async () => (await store.selectMachine(muster.database.queries, own_id))?.beat ?? 0;
  const ids = [crypto.randomUUID(), crypto.randomUUID()].sort();
  const silent = ids.map((node_id) => ({ node_id, holder: crypto.randomUUID(), datacenter_id: crypto.randomUUID() }));
  const [first_silent, other_silent] = silent as [(typeof silent)[0], (typeof silent)[0]];
  const stateOf = async ({ node_id }: { node_id: string }) =>
    (await store.selectMachine(muster.database.queries, node_id))?.state;
  await muster.database.transact(async (tx) => {
    for (const one of silent) {
      const registration = { ...one, name: 'silent', place: 'elsewhere', lost_after_ms: 1_000 };
      await store.registerMachine(tx, registration, null);
    }
  });
  await muster.database.transact(async (tx) => {
    // The process of the machine without heartbeats was paused while it took work.
    await store.lockHeld(tx, first_silent);
    const since = await waitFor(waitsSince, 'the service to declare the machine lost');
    await waitFor(async () => (await stateOf(other_silent)) === 'lost', 'the other machine to be declared lost');
    const first = await beatOf();
    await waitFor(async () => (await beatOf()) >= first + BEATS, 'some beats of the service');
    expect(await waitsSince()).toBe(since);
  });
  const countLost = () => muster.events.filter(({ event }) => event === 'machine_lost').length;
  await waitFor(() => countLost() === 2, 'the machine to be declared lost');
  expect(await stateOf(first_silent)).toBe('lost');
});

test('machines: one that starts again while old ones are deleted is kept', async () => {
  const { database } = muster;
  const gone = { node_id: crypto.randomUUID(), holder: crypto.randomUUID() };
  const shared = { name: 'gone', place: 'elsewhere', datacenter_id: crypto.randomUUID(), lost_after_ms: 3_600_000 };
  await database.transact(async (tx) => {
    await store.registerMachine(tx, { ...gone, ...shared }, null);
    await store.setStopped(tx, gone, { state: 'stopped', lost_after_ms: 3_600_000 });
  });
  const { deleting } = await database.transact(async (tx) => {
    await store.registerMachine(tx, { ...gone, ...shared }, null);
    const deletion = store.deleteGone(database.queries, 0);
    await waitFor(async () => {
      const waiting = await database.queries.execute(sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like 'delete from "machines"%'`);
      return waiting.length > 0;
    }, 'the deletion to wait for the start');
    return { deleting: deletion };
  });
  await deleting;
  expect((await store.selectMachine(database.queries, gone.node_id))?.state).toBe('up');
});
