import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import * as store from '../../../src/features/machines/store.ts';
import { machineIdOf } from '../../support/machines.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const BEATS = 5;

const muster = shareService({ MUSTER_MACHINE_LOST_MS: '1000' });

/** Returns when the statement began that waits to give a machine up; undefined if none waits. */
async function waitsSince(): Promise<string | undefined> {
  const [row] = await muster.database.queries.execute<{ since: string }>(sql`
    select query_start::text as since from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%"machines"%for update%'`);
  return row?.since;
}

test('lease: the beat of a machine does not wait while it cannot give another one up yet', async () => {
  const own_id = await machineIdOf(muster.config.data_directory);
  const beatOf = async () => (await store.selectMachine(muster.database.queries, own_id))?.beat ?? 0;
  const silent = { node_id: crypto.randomUUID(), holder: crypto.randomUUID(), datacenter_id: crypto.randomUUID() };
  const registration = { ...silent, name: 'silent', place: 'elsewhere', lost_after_ms: 1_000 };
  await muster.database.transact((tx) => store.registerMachine(tx, registration, null));
  await muster.database.transact(async (tx) => {
    // The process of the machine without beats was paused while it took work.
    await store.lockHeld(tx, silent);
    const since = await waitFor(waitsSince, 'the service to give the machine up');
    const first = await beatOf();
    await waitFor(async () => (await beatOf()) >= first + BEATS, 'some beats of the service');
    expect(await waitsSince()).toBe(since);
  });
  await waitFor(() => muster.events.some(({ event }) => event === 'machine_lost'), 'the machine to be given up');
  expect((await store.selectMachine(muster.database.queries, silent.node_id))?.state).toBe('lost');
  expect(muster.events.filter(({ event }) => event === 'machine_lost')).toHaveLength(1);
});
