import { beforeAll, describe, expect, test } from 'bun:test';
import { appendFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { createLogs, PIECE_BYTES_MAX } from '../../../src/features/servers/logs/logs.ts';
import { makeGame } from '../../support/game.ts';
import { readerOf } from '../../support/server-logs.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { makeDataDirectory, openTestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { IMMEDIATE_MS, waitFor } from '../../support/wait.ts';

const MIB = 1024 ** 2;
const DAY_MS = 24 * 3_600_000;
const CHUNKS_PER_LOG = 1_000;
const muster = shareService();
let server_id: string;
beforeAll(async () => {
  const servers = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
  server_id = await servers.run('exit 0');
  await waitForEndEvent(muster, server_id);
});

/** Writes chunks of one line into the logs of as many new servers, and returns their ids. */
async function fillLogs({ servers, ts }: { servers: number; ts: Date }): Promise<string[]> {
  const rows = await muster.database.queries.execute<{ server_id: string }>(sql`
    with copied as (
      insert into servers
      select (jsonb_populate_record(one, jsonb_build_object('server_id', gen_random_uuid()))).*
      from servers as one cross join generate_series(1, ${servers}::int) where server_id = ${server_id}
      returning server_id
    ),
    filled as (
      insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
      select server_id, 'std_out', line, 1, ${ts.toISOString()}::timestamptz + line * interval '1 ms', 5 * line, 5 * line, convert_to(E'line\\n', 'utf8')
      from copied cross join generate_series(0, ${CHUNKS_PER_LOG - 1}::int) as line
      returning 1
    )
    select server_id from copied where (select count(*) from filled) > 0`);
  return rows.map((row) => row.server_id);
}

/** Counts the chunks that have lines. */
async function countChunks(server_ids: string[]): Promise<number> {
  const [row] = await muster.database.queries.execute<{ chunks: number }>(sql`
    select count(*)::int as chunks from server_log_chunks
    where octet_length(content) > 0 and server_id = any(${sql.param(server_ids)}::uuid[])`);
  return row?.chunks ?? 0;
}

/** Longer ago than logs are kept. */
const tooLongAgo = () => new Date(muster.clock.now().getTime() - 3 * DAY_MS - 3_600_000);

describe('log retention:', () => {
  test('everything that is too old is removed at once, whatever its size, and the rest stays', async () => {
    const old = await fillLogs({ servers: 50, ts: tooLongAgo() });
    const young = await fillLogs({ servers: 1, ts: muster.clock.now() });
    // A process checks at its start, then once a minute.
    await using _ = await openTestService({}, { database_of: muster });
    await waitFor(async () => (await countChunks(old)) === 0, 'all old chunks to be removed', IMMEDIATE_MS);
    expect(await countChunks(young)).toBe(CHUNKS_PER_LOG);
  }, 300_000);

  test('several processes share the work', async () => {
    const old = await fillLogs({ servers: 10, ts: tooLongAgo() });
    const deleteAll = async () => {
      const logs = createLogs({ database: muster.database, clock: muster.clock });
      let sum = 0;
      for (let count = -1; count !== 0; sum += count) count = await logs.deleteOld();
      return sum;
    };
    const counts = await Promise.all([deleteAll(), deleteAll(), deleteAll()]);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(old.length * CHUNKS_PER_LOG);
    expect(await countChunks(old)).toBe(0);
  }, 300_000);

  test('each stream of a log keeps its last chunk as its resume point', async () => {
    const [id = ''] = await fillLogs({ servers: 1, ts: tooLongAgo() });
    await muster.database.queries.execute(sql`
      insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
      values (${id}, 'std_err', 5, 1, ${tooLongAgo().toISOString()}, 5, 5, 'line')`);
    const logs = createLogs({ database: muster.database, clock: muster.clock });
    while ((await logs.deleteOld()) > 0);
    const resume_points = await muster.database.queries.execute<{ stream: string; first_line: number }>(sql`
      select stream, first_line::int from server_log_chunks where server_id = ${id} order by stream`);
    expect([...resume_points]).toEqual([
      { stream: 'std_err', first_line: 5 },
      { stream: 'std_out', first_line: CHUNKS_PER_LOG - 1 },
    ]);
  });

  test('a chunk that another transaction has locked stays, and no other', async () => {
    const [held = '', ...others] = await fillLogs({ servers: 3, ts: tooLongAgo() });
    const logs = createLogs({ database: muster.database, clock: muster.clock });
    await muster.database.transact(async (tx) => {
      await tx.execute(sql`select from server_log_chunks where server_id = ${held} and first_line = 0 for update`);
      while ((await logs.deleteOld()) > 0);
      expect(await countChunks(others)).toBe(0);
      expect(await countChunks([held])).toBe(1);
    });
    await logs.deleteOld();
    expect(await countChunks([held])).toBe(0);
  }, 300_000);

  test('a large chunk replaces all the small ones for which it leaves no room', async () => {
    const [id = ''] = await fillLogs({ servers: 1, ts: muster.clock.now() });
    const name = { server_id: id, stream: 'std_out' as const };
    const directory = await makeDataDirectory();
    const file = join(directory, 'output');
    const read = readerOf(file);
    // Reading continues at the end offset of the last chunk: five bytes for each chunk before it.
    writeFileSync(file, '\n'.repeat(5 * CHUNKS_PER_LOG - 5 + 8 * MIB));
    const logs = createLogs({ database: muster.database, clock: muster.clock });
    while ((await logs.collect(name, read, false)).has_more);
    expect(await countChunks([id])).toBe(CHUNKS_PER_LOG + (8 * MIB) / PIECE_BYTES_MAX);
    for (let round = 0; round < 2; round += 1) {
      appendFileSync(file, '\n'.repeat(8 * MIB));
      while ((await logs.collect(name, read, false)).has_more);
    }
    expect(await countChunks([id])).toBe((16 * MIB) / PIECE_BYTES_MAX);
    await rm(directory, { recursive: true });
  }, 300_000);
});
