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

/** More than are collected in one round. */
const UNREADABLE = 6;
const ENDED: Observation = { is: 'ended', exit_code: 0, exit_signal: null };

const muster = shareService();
const { makeLogs, fileOf } = shareServerLogs(muster);

/** A machine whose servers have all ended, where the files of one cannot be removed. */
function runtimeWith(stuck_id: string | undefined): Runtime {
  return {
    kinds: [],
    kill: async (servers: readonly ServerHandle[]) => new Set(servers.map(({ server_id }) => server_id)),
    observe: async (servers: readonly ServerHandle[]) => new Map(servers.map(({ server_id }) => [server_id, ENDED])),
    readOutput: ({ server_id }, stream, query) => readerOf(fileOf(`${server_id}.${stream}`))(query),
    async remove(server_id) {
      if (server_id === stuck_id) throw new Error('the files cannot be removed');
    },
    start: () => Promise.reject(new Error('nothing is started')),
    stop: async () => false,
    list: async () => [],
    onChange() {},
  };
}

test('ending: a server whose files cannot be removed delays no other', async () => {
  const { database, clock } = muster;
  const all = await Promise.all(Array.from({ length: 3 }, () => makeLogs('bye\n')));
  const ids = all.map(([log]) => log?.name.server_id ?? '');
  const rows = (await Promise.all(ids.map((id) => selectServerById(database.queries, id)))).flatMap((row) => row ?? []);
  expect(rows).toHaveLength(3);
  const emitted: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
  const logs = createLogs({ database, clock });
  const [stuck_id = '', ...others] = ids;
  const ending = createEnding({ database, clock, events, runtime: runtimeWith(stuck_id), logs });
  // It has ended, so its files are leftovers.
  expect(await ending.end(rows)).toEqual([]);
  const of = (name: string) =>
    emitted.flatMap((event) => (event.event === name && 'server_id' in event ? event.server_id : []));
  expect(of('server_ended').toSorted()).toEqual(ids.toSorted());
  expect(of('server_step_failed')).toEqual([stuck_id]);
  await ending.removeLeftovers(rows.map(({ server_id }) => ({ server_id, identity: undefined })));
  expect(of('server_leftover_removed').toSorted()).toEqual(others.toSorted());
}, 90_000);

test('log collector: unreadable logs delay no other', async () => {
  const { database, clock } = muster;
  const unreadable = (await Promise.all(Array.from({ length: UNREADABLE }, () => makeLogs('x\n')))).flat();
  for (const { file } of unreadable) {
    rmSync(file);
    mkdirSync(file);
  }
  const readable = await makeLogs('hello\n');
  const logs = createLogs({ database, clock });
  const round = createLogCollector(logs)([...unreadable, ...readable]);
  await expect(round).rejects.toThrow('output of servers was not collected');
  for (const { name } of readable) expect((await logs.lastLines(name)).lines).toHaveLength(1);
}, 90_000);
