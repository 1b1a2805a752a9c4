import { expect, test } from 'bun:test';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import type { OutputQuery } from '../../../src/features/servers/runtimes/runtime.ts';
import { assignServer, insertServer } from '../../../src/features/servers/store.ts';
import { makeGame, uploadScript } from '../../support/game.ts';
import { waitingServer } from '../../support/runtimes/waiting-server.ts';
import { textsOf } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
const LINES = ['one', 'two', 'three', 'four', 'five', 'six'];

const AHEAD_MS = 3_000;

/** Makes a server without output, and returns the name of its log. */
async function makeLog() {
  const game = await makeGame(muster.api, muster.administrator_token);
  const build_id = await uploadScript(muster.api, game, '');
  const row = waitingServer({ ...game, build_id, datacenter_id: crypto.randomUUID() });
  await muster.database.transact(async (tx) => {
    await insertServer(tx, row);
    await assignServer(tx, row.server_id, { node_id: crypto.randomUUID(), ports: {} });
  });
  return { server_id: row.server_id, stream: 'std_out' } as const;
}

/** Reads the output of a server, which has written some of its lines so far. */
const reader = (count: () => number) => async (query: OutputQuery) => {
  const written = Buffer.from(`${LINES.slice(0, count()).join('\n')}\n`);
  const from = Number(query.from ?? 0);
  const resumeAfter = (bytes: number) => String(from + bytes);
  return { bytes: new Uint8Array(written.subarray(from)), skipped_bytes: 0, has_more: false, resumeAfter };
};

test('a log to which two processes add, one with a clock that is behind, is sorted by time', async () => {
  const name = await makeLog();
  const now = () => new Date(muster.clock.now().getTime() + AHEAD_MS);
  const [ahead, behind] = [createLogs({ ...muster, clock: { now } }), createLogs(muster)];
  await ahead.addLine(name, '[muster] this server does not run yet');
  let count = 2;
  const read = reader(() => count);
  await behind.collect(name, read, false);
  await behind.addLine(name, '[muster] a word');
  count = 3;
  await ahead.collect(name, read, false);
  const { lines } = await behind.linesFrom(name, 0);
  expect(lines).toHaveLength(5);
  const times = lines.map(({ ts }) => ts.getTime());
  expect(times).toEqual(times.toSorted((one, other) => one - other));
});

test('a log to which two processes add, each at the end that it knows, has each line once', async () => {
  const name = await makeLog();
  const [earlier, later] = [createLogs(muster), createLogs(muster)];
  let count = 1;
  const read = reader(() => count);
  await earlier.collect(name, read, false);
  await later.collect(name, read, false);
  count = 3;
  await later.collect(name, read, false);
  // The earlier process was paused, and goes on at the end that it knew.
  await earlier.collect(name, read, false);
  await earlier.addLine(name, '[muster] a word');
  await later.addLine(name, '[muster] another word');
  count = LINES.length;
  await Promise.all([earlier.collect(name, read, false), later.collect(name, read, false)]);
  const { lines } = await later.linesFrom(name, 0);
  const [first, second, third, ...rest] = LINES;
  const notes = ['[muster] a word', '[muster] another word'];
  expect(textsOf(lines)).toEqual([...[first, second, third].map(String), ...notes, ...rest]);
  expect(lines.map(({ number }) => number)).toEqual(lines.map((_, index) => index));
});
