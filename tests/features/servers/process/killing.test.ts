import { expect, test } from 'bun:test';
import { killServers } from '../../../../src/features/servers/runtimes/linux/killing.ts';
import type { ReadTrees } from '../../../../src/features/servers/runtimes/linux/process-trees.ts';
import { readStat } from '../../../../src/platform/system/processes.ts';

const SERVER = { server_id: crypto.randomUUID(), process: undefined, user_id: undefined };

/** Starts a process, and returns it as a scan of the processes of a server lists it. */
function startListed() {
  const process = Bun.spawn(['sleep', '600']);
  const stat = readStat(process.pid);
  if (!stat) throw new Error('the process runs');
  return { process, listed: { pid: process.pid, ...stat } };
}

/** Lists these processes in one scan, and none after it. */
function listOnce(...listed: ReturnType<typeof startListed>['listed'][]): ReadTrees {
  // The first scan is the one before the kill.
  const scans = [[], listed];
  return async () => new Map([[SERVER.server_id, scans.shift() ?? []]]);
}

test('kill: the process that was listed gets the signal', async () => {
  const { process, listed } = startListed();
  expect(await killServers([SERVER], { readTrees: listOnce(listed) })).toEqual(new Set([SERVER.server_id]));
  await process.exited;
  expect(process.signalCode).toBe('SIGKILL');
});

test('kill: a process of another program that got the id of a listed process since gets no signal', async () => {
  const { process, listed } = startListed();
  const earlier = { ...listed, start_ticks: listed.start_ticks - 1 };
  expect(await killServers([SERVER], { readTrees: listOnce(earlier) })).toEqual(new Set([SERVER.server_id]));
  const left = process.signalCode;
  process.kill('SIGTERM');
  await process.exited;
  expect([left, process.signalCode]).toEqual([null, 'SIGTERM']);
});

test('kill: a process of the control group that is in no other list gets the signal', async () => {
  const { process } = startListed();
  const groups = [[process.pid]];
  await killServers([SERVER], { readTrees: listOnce(), listGroup: () => groups.shift() ?? [] });
  await process.exited;
  expect(process.signalCode).toBe('SIGKILL');
});
