// Measures the memory that large requests take: `bun bench/large.ts`. Exports a lobby history of 1,000,000 rows, beside
// PostgreSQL's own COPY of the same rows; uploads a site of 1 GB, beside a server that only writes it to the disk.
// Memory is the peak of the service's process, less its memory before.
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { makeGame } from '../tests/support/game.ts';
import { copyLobbies } from '../tests/support/lobbies/lobby-copies.ts';
import { makeRoomGame, READY_SOURCE } from '../tests/support/lobbies/room.ts';
import { findFreePort } from '../tests/support/network/test-ports.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { residentBytes } from './meter.ts';
import { runBench } from './run.ts';

const ROWS = 1_000_000;
const MIB = 1024 ** 2;
const SITE_BYTES = 1_000_000_000;
const CHUNK = crypto.getRandomValues(new Uint8Array(65_536));
const DAY_MS = 24 * 3_600_000;
/** For statements that write or read tens of thousands of rows. */
const DEADLINES = { query_ms: 600_000, pool_wait_ms: 2_000, transaction_ms: 600_000 };

await runBench(async (opened) => {
  const home = opened.use(await makeHome({ MUSTER_DEMO: 'off' }));
  const program = await home.start({ command: commandOf('source') });
  const path = join(home.data_directory, 'postgres/socket/.s.PGSQL.5432');
  const database = opened.use(openDatabase({ path, user: 'muster', database: 'postgres' }, 1, DEADLINES));
  await measureExport(program, database);
  await measureUpload(program, join(home.data_directory, 'sink'));
});

async function measureExport(program: Program, database: Database): Promise<void> {
  const { api, pid } = program;
  const game = await makeRoomGame(program, { source: READY_SOURCE });
  await api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body: { game_modes: ['default'] } });
  await database.queries.execute(sql`set statement_timeout = 0`);
  for (let batch = 0; batch < 20; batch += 1) {
    const from = sql`
      (select lobbies as lobby from lobbies where stop_ts is null limit 1) as one, generate_series(1, ${ROWS / 20}::int) as number`;
    const changes = sql`jsonb_build_object(
      'lobby_id', gen_random_uuid(), 'code', null, 'player_count', 0, 'stop_ts', now(),
      'create_ts', now() - (${batch}::int * 50000 + number) * interval '10 milliseconds')`;
    await database.queries.execute(copyLobbies(from, changes));
  }
  const window = { query_start: Date.now() - DAY_MS, query_end: Date.now() + DAY_MS };
  const { url } = await api.ok('POST', `/cloud/games/${game.game_id}/matchmaker/lobbies/export-history`, {
    token: game.cloud_token,
    body: window,
  });
  const muster = await timedWithMemory(pid, async () => {
    const response = await fetch(url);
    let lines = 0;
    for await (const bytes of response.body ?? []) for (const byte of bytes) if (byte === 10) lines += 1;
    return lines - 1;
  });
  const copy = await timed(async () => {
    await database.queries.execute(sql.raw(`copy (select * from lobbies) to '/dev/null' with csv`));
  });
  console.log(`\nExport of a lobby history: ${muster.result.toLocaleString('en')} rows`);
  print('Muster, over HTTP', muster.seconds, ROWS / muster.seconds, 'rows/s', muster.peak_bytes);
  print("PostgreSQL's COPY to nowhere", copy.seconds, ROWS / copy.seconds, 'rows/s');
}

async function measureUpload({ api, administrator_token, pid }: Program, sink_path: string): Promise<void> {
  const game = await makeGame(api, administrator_token);
  const token = game.cloud_token;
  const { upload_id, presigned_requests } = await api.ok('POST', `/cloud/games/${game.game_id}/cdn/sites`, {
    token,
    body: { display_name: 'Large', files: [{ path: 'large.bin', content_length: SITE_BYTES }] },
  });
  const muster = await timedWithMemory(pid, async () => {
    for (const { url, content_length } of presigned_requests) await send(url, content_length);
    await api.ok('POST', `/cloud/uploads/${upload_id}/complete`, { token });
  });
  const limit = await timed(async () => {
    await using sink = await openSink(sink_path);
    for (const { content_length } of presigned_requests) await send(sink.url, content_length);
  });
  console.log(
    `\nUpload of ${SITE_BYTES.toLocaleString('en')} bytes in ${presigned_requests.length} parts, synced to the disk`,
  );
  print('Muster', muster.seconds, SITE_BYTES / MIB / muster.seconds, 'MiB/s', muster.peak_bytes);
  print('a bare server that writes and syncs', limit.seconds, SITE_BYTES / MIB / limit.seconds, 'MiB/s');
}

function print(name: string, seconds: number, rate: number, unit: string, peak_bytes?: number): void {
  const memory = peak_bytes === undefined ? '' : `  at most ${(peak_bytes / MIB).toFixed(0)} MiB more`;
  const speed = `${Math.round(rate).toLocaleString('en')} ${unit}`;
  console.log(`  ${name.padEnd(36)}${seconds.toFixed(1).padStart(6)} s  ${speed.padStart(16)}${memory}`);
}

async function timed<Result>(work: () => Promise<Result>): Promise<{ result: Result; seconds: number }> {
  const started = performance.now();
  const result = await work();
  return { result, seconds: (performance.now() - started) / 1_000 };
}

/** Times work, and returns how much memory a process gained meanwhile. */
async function timedWithMemory<Result>(pid: number, work: () => Promise<Result>) {
  const before = residentBytes(pid);
  let peak = before;
  const looking = setInterval(() => {
    peak = Math.max(peak, residentBytes(pid));
  }, 20);
  const done = await timed(work);
  clearInterval(looking);
  return { ...done, peak_bytes: peak - before };
}

async function send(url: string, content_length: number): Promise<void> {
  let left = content_length;
  const body = new ReadableStream({
    pull(stream) {
      if (left === 0) return stream.close();
      stream.enqueue(CHUNK.subarray(0, Math.min(left, CHUNK.length)));
      left -= Math.min(left, CHUNK.length);
    },
  });
  const response = await fetch(url, { method: 'PUT', body });
  if (!response.ok) throw new Error(await response.text());
}

/** A server that only writes what it receives to a file. */
async function openSink(path: string) {
  const port = findFreePort();
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    maxRequestBodySize: 2 * SITE_BYTES,
    async fetch({ body }) {
      const file = await open(path, 'w');
      for await (const chunk of body ?? []) await file.writeFile(chunk);
      await file.sync();
      await file.close();
      return new Response();
    },
  });
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: () => server.stop(true) };
}
