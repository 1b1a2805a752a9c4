import { expect, test } from 'bun:test';
import { mkdirSync, rmSync } from 'node:fs';
import { createEnding } from '../../../src/features/servers/ending.ts';
import { createLogCollector } from '../../../src/features/servers/logs/log-collector.ts';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import type { Observation, Runtime, ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { selectServerById } from '../../../src/features/servers/store.ts';
import type { PlacedServer } from '../../../src/features/servers/tables.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { makeGame } from '../../support/game.ts';
import {
  createEndedRuntime,
  idsOf,
  killAtOnce,
  openSimulatedMachine,
} from '../../support/matchmaker/simulated-machine.ts';
import { readerOf, shareServerLogs } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** Servers with more logs than are collected at one time. */
const UNREADABLE = 6;
/** Between two intervals of the loop. */
const KILL_TIMEOUT_MS = 750;
const ENDED: Observation = { is: 'ended', exit_code: 0, exit_signal: null };
const STILL_RUNNING: Observation = {
  is: 'running',
  identity: { pid: 1, start_ticks: 0, boot_id: '' },
  host: '127.0.0.1',
};

const muster = shareService();
const { makeLogs, fileOf } = shareServerLogs(muster);

type Step = 'kill' | 'observe' | 'remove';

/** A machine whose servers have all ended, where a step fails for one of them. */
function runtimeWith(stuck_id: string, stuck_at: Step | undefined, stuck_as = ENDED): Runtime {
  const perform = (step: Step, server_ids: string[]) => {
    if (step === stuck_at && server_ids.some((id) => id === stuck_id))
      throw new Error(`it fails to ${step} the server`);
  };
  return createEndedRuntime({
    async kill(servers, onGone) {
      perform('kill', idsOf(servers));
      return await killAtOnce(servers, onGone);
    },
    async observe(servers) {
      perform('observe', idsOf(servers));
      return new Map(idsOf(servers).map((server_id) => [server_id, server_id === stuck_id ? stuck_as : ENDED]));
    },
    readOutput: ({ server_id }, stream, query) => readerOf(fileOf(`${server_id}.${stream}`))(query),
    async remove(server_id) {
      perform('remove', [server_id]);
    },
  });
}

/** Makes three servers, and the steps that end them on a machine where one is stuck. */
async function makeEnding(stuck_at: Step | undefined, stuck_as?: Observation, changes: Partial<Runtime> = {}) {
  const { database, clock } = muster;
  const all = await Promise.all(Array.from({ length: 3 }, () => makeLogs('bye\n')));
  const ids = all.map(([log]) => log?.name.server_id ?? '');
  const rows = (await Promise.all(ids.map((id) => selectServerById(database.queries, id)))).flatMap((row) => row ?? []);
  expect(rows).toHaveLength(3);
  const emitted: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
  const logs = createLogs({ database, clock });
  const [stuck_id = '', ...others] = ids;
  const runtime = { ...runtimeWith(stuck_id, stuck_at, stuck_as), ...changes };
  const ending = createEnding({ database, clock, events, runtime, logs });
  const idsIn = (name: string) =>
    emitted.flatMap((event) => (event.event === name && 'server_id' in event ? event.server_id : []));
  const stepsOf = (id: string) =>
    emitted.flatMap((event) => (event.event === 'server_step_failed' && event.server_id === id ? event.step : []));
  /** Ends all of them. Returns those to try again. */
  async function endAll(): Promise<string[]> {
    const ends: PlacedServer[] = [];
    await ending.kill(rows, { onGone: (end) => void ends.push(end), onFailure() {} });
    const finished = await Promise.allSettled(ends.map(ending.finish));
    const done = ends.filter((_, index) => finished[index]?.status === 'fulfilled').map(({ server_id }) => server_id);
    return ids.filter((id) => !done.includes(id));
  }
  return { rows, ids, stuck_id, others, ending, endAll, idsIn, stepsOf };
}

test('ending: a server whose files cannot be removed delays no other', async () => {
  const { rows, ids, stuck_id, others, ending, endAll, idsIn } = await makeEnding('remove');
  // It has ended, so its files are leftovers.
  expect(await endAll()).toEqual([]);
  expect(idsIn('server_ended').toSorted()).toEqual(ids.toSorted());
  expect(idsIn('server_step_failed')).toEqual([stuck_id]);
  await ending.endLeftovers(rows.map(({ server_id }) => ({ server_id, identity: undefined })));
  expect(idsIn('server_leftover_removed').toSorted()).toEqual(others.toSorted());
}, 300_000);

test.each(['kill', 'observe'] as const)(
  'ending: a server that its machine fails to %s delays no other',
  async (step) => {
    const { stuck_id, others, endAll, idsIn, stepsOf } = await makeEnding(step);
    expect(await endAll()).toEqual([stuck_id]);
    expect(idsIn('server_step_failed')).toEqual([stuck_id]);
    expect(stepsOf(stuck_id)).toEqual(['kill']);
    expect(idsIn('server_ended').toSorted()).toEqual(others.toSorted());
  },
  300_000,
);

test('ending: a leftover that its machine fails to kill delays no other', async () => {
  const { rows, stuck_id, others, ending, idsIn } = await makeEnding('kill');
  const leftovers = rows.map(({ server_id }) => ({ server_id, identity: undefined }));
  // It rejects, so that a machine that was declared lost takes no work before its servers have ended.
  await expect(ending.endLeftovers(leftovers)).rejects.toThrow();
  expect(idsIn('server_step_failed')).toEqual([stuck_id]);
  expect(idsIn('server_leftover_removed').toSorted()).toEqual(others.toSorted());
}, 300_000);

test('ending: a leftover that still runs after it was killed is reported, and keeps its files', async () => {
  const removed: string[] = [];
  const { rows, stuck_id, others, ending, idsIn, stepsOf } = await makeEnding(undefined, undefined, {
    kill: (servers, onGone) =>
      killAtOnce(
        servers.filter(({ server_id }) => server_id !== stuck_id),
        onGone,
      ),
    remove: async (server_id) => void removed.push(server_id),
  });
  const leftovers = rows.map(({ server_id }) => ({ server_id, identity: undefined }));
  await expect(ending.endLeftovers(leftovers)).rejects.toThrow('processes of the server still run');
  expect(stepsOf(stuck_id)).toEqual(['kill']);
  expect(idsIn('server_leftover_removed').toSorted()).toEqual(others.toSorted());
  expect(removed.toSorted()).toEqual(others.toSorted());
}, 300_000);

test('ending: a server that was ended while the database could not record why has that reason, and no restart', async () => {
  const place = await makeGame(muster.api, muster.administrator_token);
  const server_id = crypto.randomUUID();
  const unrecorded_failures = new Map([[server_id, 'it exceeded its disk']]);
  await using machine = await openSimulatedMachine(muster, place, createEndedRuntime(), { unrecorded_failures });
  await machine.add({ ...ENDING(), server_id, destroyed_at: null, kill_at: null, restarts_max: 3 });
  expect(await machine.waitForEvent('server_ended', server_id)).toMatchObject({ failure: 'it exceeded its disk' });
  const row = await selectServerById(muster.database.queries, server_id);
  expect(row).toMatchObject({ failure: 'it exceeded its disk', restarted_as: null });
  expect(unrecorded_failures.size).toBe(0);
}, 300_000);

test('ending: a server that does not die delays no other of its round', async () => {
  const held = Promise.withResolvers<void>();
  const { rows, ids, stuck_id, others, ending } = await makeEnding(undefined, undefined, {
    async kill(servers, onGone) {
      const isStuck = ({ server_id }: ServerHandle) => server_id === stuck_id;
      await killAtOnce(
        servers.filter((server) => !isStuck(server)),
        onGone,
      );
      await held.promise;
      await killAtOnce(servers.filter(isStuck), onGone);
      return new Set(idsOf(servers));
    },
  });
  const gone: string[] = [];
  const others_gone = Promise.withResolvers<void>();
  const killing = ending.kill(rows, {
    onGone({ server_id }) {
      gone.push(server_id);
      if (gone.length === others.length) others_gone.resolve();
    },
    onFailure: ({ server_id }) => others_gone.reject(new Error(`${server_id} was not killed`)),
  });
  await others_gone.promise;
  expect(gone.toSorted()).toEqual(others.toSorted());
  held.resolve();
  await killing;
  expect(gone.toSorted()).toEqual(ids.toSorted());
}, 300_000);

/** The row of a server that has run and whose end was requested, without its ids. */
const ENDING = () => ({
  identity: { pid: 1 },
  started_at: muster.clock.now(),
  destroyed_at: muster.clock.now(),
  kill_at: muster.clock.now(),
});

const SLOW = [
  ['whose files take long to remove', 'remove'],
  ['whose output takes long to read', 'readOutput'],
] as const;
test.each(SLOW)(
  'ending: a server %s delays no end of the next round',
  async (_, step) => {
    const held = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const whole = createEndedRuntime();
    let slow_id = '';
    const hold = async (server_id: string) => {
      if (server_id !== slow_id) return;
      reached.resolve();
      await held.promise;
    };
    const runtime = createEndedRuntime({
      [step]: async (...args: unknown[]) => {
        const [server] = args as [string | ServerHandle];
        await hold(typeof server === 'string' ? server : server.server_id);
        return await (whole[step] as (...args: unknown[]) => Promise<unknown>)(...args);
      },
    });
    await using machine = await openSimulatedMachine(
      muster,
      await makeGame(muster.api, muster.administrator_token),
      runtime,
    );
    slow_id = crypto.randomUUID();
    await machine.add({ ...ENDING(), server_id: slow_id });
    await reached.promise;
    const quick_id = await machine.add(ENDING());
    await machine.waitForEvent('server_ended', quick_id);
    expect(machine.events.some((event) => event.event === 'server_ended' && event.server_id === slow_id)).toBe(false);
    held.resolve();
    await machine.waitForEvent('server_ended', slow_id);
  },
  300_000,
);

const FINISHING = [
  ['began to end before', true],
  ['ran until then', false],
] as const;
test.each(FINISHING)(
  'ending: a server that finishes while leftovers are listed is none of them, if it %s',
  async (_, is_ending) => {
    const removal = Promise.withResolvers<void>();
    const listing = Promise.withResolvers<void>();
    const listed = Promise.withResolvers<void>();
    const server_id = crypto.randomUUID();
    let is_listed = false;
    const observe = is_ending
      ? ENDED
      : () => (is_listed ? ENDED : { is: 'running' as const, identity: { pid: 1 }, host: '127.0.0.1' });
    const runtime = createEndedRuntime({
      observe: async (servers) =>
        new Map(idsOf(servers).map((id) => [id, typeof observe === 'function' ? observe() : observe])),
      stop: async () => true,
      remove: () => removal.promise,
      async list() {
        if (!is_listed) return [];
        listing.resolve();
        await listed.promise;
        return [{ server_id, identity: undefined }];
      },
    });
    const place = await makeGame(muster.api, muster.administrator_token);
    await using machine = await openSimulatedMachine(muster, place, runtime);
    await machine.add({ ...ENDING(), server_id, ...(is_ending ? {} : { destroyed_at: null, kill_at: null }) });
    if (is_ending) {
      const read = async () => (await selectServerById(muster.database.queries, server_id))?.ended_at ?? undefined;
      await waitFor(read, 'its end');
    }
    is_listed = true;
    const removing = machine.removeLeftovers();
    await listing.promise;
    removal.resolve();
    await machine.waitForEvent('server_ended', server_id);
    listed.resolve();
    await removing;
    expect(machine.events.filter(({ event }) => event === 'server_leftover_removed')).toEqual([]);
  },
  300_000,
);

test('ending: a machine that cannot place waiting servers ends those that it has', async () => {
  const place = await makeGame(muster.api, muster.administrator_token);
  const cause = new Error('the groups cannot be read');
  const groupsOf = () => Promise.reject(cause);
  await using machine = await openSimulatedMachine(muster, place, createEndedRuntime(), {
    developerGroupsOf: groupsOf,
  });
  await machine.add({ node_id: null });
  await waitFor(() => machine.events.find(({ event }) => event === 'servers_not_placed'), 'the failure');
  await machine.waitForEvent('server_ended', await machine.add(ENDING()));
  const failures = machine.events.filter(({ event }) => event === 'loop_failed' || event === 'servers_not_placed');
  expect(failures).toEqual(failures.map(() => ({ event: 'servers_not_placed', cause })));
}, 300_000);

test('ending: a kill timeout that passes wakes the loop, so it is no missed notification', async () => {
  let is_killed = false;
  const RUNNING: Observation = { is: 'running', identity: { pid: 1 }, host: '127.0.0.1' };
  const runtime = createEndedRuntime({
    stop: async () => true,
    observe: async (servers) => new Map(idsOf(servers).map((id) => [id, is_killed ? ENDED : RUNNING])),
    async kill(servers, onGone) {
      is_killed = true;
      return await killAtOnce(servers, onGone);
    },
  });
  await using machine = await openSimulatedMachine(
    muster,
    await makeGame(muster.api, muster.administrator_token),
    runtime,
  );
  const kill_at = new Date(muster.clock.now().getTime() + KILL_TIMEOUT_MS);
  await machine.waitForEvent('server_ended', await machine.add({ ...ENDING(), kill_at }));
  expect(machine.events.filter(({ event }) => event === 'loop_corrected')).toEqual([]);
}, 300_000);

test('ending: a killed server that does not count as ended is reported and tried again later', async () => {
  const { stuck_id, others, endAll, idsIn } = await makeEnding(undefined, STILL_RUNNING);
  expect(await endAll()).toEqual([stuck_id]);
  expect(idsIn('server_step_failed')).toEqual([stuck_id]);
  expect(idsIn('server_ended').toSorted()).toEqual(others.toSorted());
}, 300_000);

test('ending: a server whose output has no end is ended like the others', async () => {
  const readOutput: Runtime['readOutput'] = async (_server, _stream, { from = '0' }) => ({
    bytes: Buffer.from('more\n'),
    skipped_bytes: 0,
    has_more: true,
    resumeAfter: (bytes) => String(Number(from) + bytes),
  });
  const { ids, endAll, idsIn } = await makeEnding(undefined, undefined, { readOutput });
  expect(await endAll()).toEqual([]);
  expect(idsIn('server_ended').toSorted()).toEqual(ids.toSorted());
}, 300_000);

test('log collector: unreadable logs are reported once each, and delay neither another log nor the next round', async () => {
  const { database, clock } = muster;
  const unreadable = (await Promise.all(Array.from({ length: UNREADABLE }, () => makeLogs('x\n')))).flat();
  for (const { file } of unreadable) {
    rmSync(file);
    mkdirSync(file);
  }
  const readable = await makeLogs('hello\n');
  const logs = createLogs({ database, clock });
  const reported: string[] = [];
  const collectRound = createLogCollector(logs, {
    emit: (event) =>
      void ('server_id' in event && event.event === 'server_step_failed' && reported.push(event.server_id)),
  });
  for (let round = 0; round < 2; round += 1) await collectRound([...unreadable, ...readable]);
  for (const { name } of readable) expect((await logs.lastLines(name)).lines).toHaveLength(1);
  expect(reported.toSorted()).toEqual(unreadable.map(({ name }) => name.server_id).toSorted());
}, 300_000);
