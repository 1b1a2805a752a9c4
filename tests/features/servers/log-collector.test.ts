import { describe, expect, test } from 'bun:test';
import { appendFileSync, closeSync, openSync, statSync, writeSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import {
  createLogCollector,
  type LogSource,
  ROUND_BYTES_MAX,
} from '../../../src/features/servers/logs/log-collector.ts';
import { createLogs, PIECE_BYTES_MAX } from '../../../src/features/servers/logs/logs.ts';
import { shareServerLogs, textsOf } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';

const QUIET = { emit() {} };
const muster = shareService();
const { makeLog, makeLogs } = shareServerLogs(muster);

async function keptBytes(sources: LogSource[]): Promise<number> {
  const ids = sources.map(({ name }) => name.server_id);
  const [row] = await muster.database.queries.execute<{ bytes: number }>(sql`
    select coalesce(sum(length(content)), 0)::int as bytes from server_log_chunks
    where server_id = any(${sql.param(ids)}::uuid[])`);
  return row?.bytes ?? 0;
}

describe('log collector:', () => {
  test('a round reads a limited number of bytes, and takes logs in turn', async () => {
    const flood = '\n'.repeat(2 * PIECE_BYTES_MAX);
    const flooding = (await Promise.all(Array.from({ length: 10 }, () => makeLogs(flood)))).flat();
    const quiet = await makeLogs('hello\n');
    const sources = [...flooding, ...quiet];
    const logs = createLogs({ database: muster.database, clock: muster.clock });
    const collectRound = createLogCollector(logs, QUIET);

    await collectRound(sources);
    expect(await keptBytes(sources)).toBe(ROUND_BYTES_MAX);
    const rounds_until_each_had_a_turn = Math.ceil((flooding.length * PIECE_BYTES_MAX) / ROUND_BYTES_MAX);
    for (let round = 1; round < rounds_until_each_had_a_turn; round += 1) await collectRound(sources);
    for (const source of quiet) expect((await logs.lastLines(source.name)).lines).toHaveLength(1);
    const kept_of_servers = await Promise.all(flooding.map((source) => keptBytes([source])));
    // Each is the sum of a server's two logs.
    expect(Math.min(...kept_of_servers)).toBeGreaterThanOrEqual(2 * PIECE_BYTES_MAX);

    for (let round = 0; round < 20; round += 1) await collectRound(sources);
    expect(await keptBytes(sources)).toBe(flooding.length * flood.length + 2 * 'hello\n'.length);
  }, 300_000);

  test('a single log may use the whole round', async () => {
    const source = await makeLog('\n'.repeat(2 * ROUND_BYTES_MAX));
    await createLogCollector(createLogs({ database: muster.database, clock: muster.clock }), QUIET)([source]);
    expect(await keptBytes([source])).toBe(ROUND_BYTES_MAX);
  });

  test('the dropped output of a running server frees its disk space, and its next line is kept', async () => {
    const { name, file, read } = await makeLog();
    const logs = createLogs({ database: muster.database, clock: muster.clock });
    // Open all the time and in append mode, as a server has it.
    const writer = openSync(file, 'a');
    for (let mebibyte = 0; mebibyte < 64; mebibyte += 1) appendFileSync(file, 'y\n'.repeat(1024 ** 2 / 2));
    expect(statSync(file).blocks * 512).toBeGreaterThanOrEqual(64 * 1024 ** 2);
    while ((await logs.collect(name, read, false)).has_more);
    // The next round frees what this one has stored.
    await logs.collect(name, read, false);
    expect(statSync(file).blocks * 512).toBeLessThanOrEqual(PIECE_BYTES_MAX);

    writeSync(writer, 'the next line\n');
    closeSync(writer);
    await logs.collect(name, read, false);
    const { lines } = await logs.lastLines(name);
    expect(textsOf(lines.slice(-2))).toEqual(['y', 'the next line']);
    const restarted = createLogs({ database: muster.database, clock: muster.clock });
    expect(await restarted.collect(name, read, false)).toEqual({ bytes: 0, has_more: false });
  });

  test('on a nearly full disk output stays in its file, or is dropped, and later output is kept', async () => {
    const { name, file, read } = await makeLog('the first line\n');
    let is_low = true;
    const logs = createLogs({ database: muster.database, clock: muster.clock, isSpaceLow: async () => is_low });
    const readTexts = async () => textsOf((await logs.lastLines(name)).lines);
    await logs.collect(name, read, false);
    expect(await readTexts()).toEqual([]);

    appendFileSync(file, 'y\n'.repeat(PIECE_BYTES_MAX));
    const { size } = statSync(file);
    await logs.collect(name, read, false);
    await logs.collect(name, read, false);
    expect(statSync(file).blocks * 512).toBeLessThan(PIECE_BYTES_MAX);
    appendFileSync(file, 'the next line\n');
    await logs.collect(name, read, false);
    is_low = false;
    await logs.collect(name, read, false);
    const dropped = `[muster] at least ${size} bytes dropped: the service's disk is nearly full`;
    expect(await readTexts()).toEqual([dropped, 'the next line']);
  });
});
