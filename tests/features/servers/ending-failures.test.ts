import { expect, test } from 'bun:test';
import { mkdirSync, rmSync } from 'node:fs';
import { createEnding } from '../../../src/features/servers/ending.ts';
import { createLogCollector } from '../../../src/features/servers/log-collector.ts';
import { createLogs } from '../../../src/features/servers/logs.ts';
import type { Observation, Runtime, ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { selectServerById } from '../../../src/features/servers/store.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { readerOf, shareServerLogs } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';

/** Servers with more logs than are collected at one time. */
const UNREADABLE = 6;
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
  const idsOf = (servers: readonly ServerHandle[]) => servers.map(({ server_id }) => server_id);
  return {
    kinds: [],
    async kill(servers) {
      perform('kill', idsOf(servers));
      return new Set(idsOf(servers));
    },
    async observe(servers) {
      perform('observe', idsOf(servers));
      return new Map(idsOf(servers).map((server_id) => [server_id, server_id === stuck_id ? stuck_as : ENDED]));
    },
    readOutput: ({ server_id }, stream, query) => readerOf(fileOf(`${server_id}.${stream}`))(query),
    async remove(server_id) {
      perform('remove', [server_id]);
    },
    start: () => Promise.reject(new Error('nothing is started')),
    stop: async () => false,
    list: async () => [],
    onChange() {},
  };
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
  return { rows, ids, stuck_id, others, ending, idsIn };
}

test('ending: a server whose files cannot be removed delays no other', async () => {
  const { rows, ids, stuck_id, others, ending, idsIn } = await makeEnding('remove');
  // It has ended, so its files are leftovers.
  expect(await ending.end(rows)).toEqual([]);
  expect(idsIn('server_ended').toSorted()).toEqual(ids.toSorted());
  expect(idsIn('server_step_failed')).toEqual([stuck_id]);
  await ending.removeLeftovers(rows.map(({ server_id }) => ({ server_id, identity: undefined })));
  expect(idsIn('server_leftover_removed').toSorted()).toEqual(others.toSorted());
}, 300_000);

test.each(['kill', 'observe'] as const)(
  'ending: a server that its machine fails to %s delays no other',
  async (step) => {
    const { rows, stuck_id, others, ending, idsIn } = await makeEnding(step);
    expect((await ending.end(rows)).map(({ server_id }) => server_id)).toEqual([stuck_id]);
    expect(idsIn('server_step_failed')).toEqual([stuck_id]);
    expect(idsIn('server_ended').toSorted()).toEqual(others.toSorted());
  },
  300_000,
);

test('ending: a leftover that its machine fails to kill delays no other', async () => {
  const { rows, stuck_id, others, ending, idsIn } = await makeEnding('kill');
  const leftovers = rows.map(({ server_id }) => ({ server_id, identity: undefined }));
  // It rejects, so that a machine that was given up takes no work before its servers have ended.
  await expect(ending.removeLeftovers(leftovers)).rejects.toThrow();
  expect(idsIn('server_step_failed')).toEqual([stuck_id]);
  expect(idsIn('server_leftover_removed').toSorted()).toEqual(others.toSorted());
}, 300_000);

test('ending: a killed server that does not count as ended is reported and tried again later', async () => {
  const { rows, stuck_id, others, ending, idsIn } = await makeEnding(undefined, STILL_RUNNING);
  expect((await ending.end(rows)).map(({ server_id }) => server_id)).toEqual([stuck_id]);
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
  const { rows, ids, ending, idsIn } = await makeEnding(undefined, undefined, { readOutput });
  expect(await ending.end(rows)).toEqual([]);
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
