// Measures what it costs to watch a large list: `bun bench/lists.ts`. A namespace has 5,000 lobbies, of which 50 change in
// each second; one client watches all of them as bodies (analytics/matchmaker/live), or a window of 50 as changes.
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { topics } from '../src/features/topics.ts';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { touch } from '../src/platform/watch/versions.ts';
import { copyLobbies } from '../tests/support/lobby-copies.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { makeRoomGame, QUIET_SOURCE } from '../tests/support/room.ts';
import { openSocket } from '../tests/support/socket.ts';
import { startMeter } from './meter.ts';
import { runBench } from './run.ts';

const LOBBIES = 5_000;
const CHANGES_PER_SECOND = 50;
const SECONDS = 10;

await runBench(async (opened) => {
  const home = opened.use(await makeHome({ MUSTER_DEMO: 'off' }));
  const program = await home.start({ command: commandOf('source') });
  const path = join(home.data_directory, 'postgres/socket/.s.PGSQL.5432');
  const database = opened.use(openDatabase({ path, user: 'muster', database: 'postgres' }, 2));
  const { game_id, namespace_id, public_token } = await makeRoomGame(program, { source: QUIET_SOURCE });
  await program.api.ok('POST', '/matchmaker/lobbies/find', { token: public_token, body: { game_modes: ['default'] } });
  const copied = sql`
    (select lobbies as lobby from lobbies where stop_ts is null limit 1) as one, generate_series(1, ${LOBBIES}::int)`;
  const changes = sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null, 'idle_ts', null,
    'seats_check_ts', now() + interval '1 day')`;
  await database.queries.execute(copyLobbies(copied, changes));
  await database.queries.execute(sql`analyze`);
  const ids = await database.queries.execute<{ lobby_id: string }>(sql`select lobby_id from lobbies limit ${LOBBIES}`);
  const lobby_ids = ids.map(({ lobby_id }) => lobby_id);
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const watching = { program, database, namespace_id, lobby_ids };
  console.log(`${LOBBIES} lobbies, ${CHANGES_PER_SECOND} changes/s for ${SECONDS} s, one watcher`);
  const idle = await measure('none', undefined, watching);
  const bodies = await measure('bodies', `${namespace}/analytics/matchmaker/live`, watching);
  const rows = await measure('changed rows', `${namespace}/matchmaker/lobbies?order=oldest`, watching);
  const costOf = ({ seconds, frames }: typeof idle) => (seconds - idle.seconds) / frames;
  const share = (100 * costOf(rows)) / costOf(bodies);
  console.log(`An update by changed rows costs ${share.toFixed(1)} % of one by a body.`);
});

interface Watching {
  program: Program;
  database: Database;
  namespace_id: string;
  lobby_ids: string[];
}

/** Returns the processor time of the service and its database, and how many frames the watcher got. */
async function measure(
  name: string,
  path: string | undefined,
  { program, database, namespace_id, lobby_ids }: Watching,
): Promise<{ seconds: number; frames: number }> {
  using socket = openSocket(program.url, { token: program.administrator_token });
  if (path !== undefined) await socket.body(await socket.subscribe('list', path));
  const before = { frames: socket.frames.length, bytes: 0 };
  socket.socket.addEventListener('message', ({ data }) => {
    before.bytes += String(data).length;
  });
  const list = topics.lobbiesOf(namespace_id);
  const stopMeter = startMeter({ server_pid: program.pid, database_pid: await databaseOf(database) });
  const end = performance.now() + SECONDS * 1_000;
  let changes = 0;
  for (; performance.now() < end; changes += 1) {
    const lobby_id = lobby_ids[(changes * 7_919) % lobby_ids.length];
    await database.transact(async (tx) => {
      const versions = await touch(tx, [list]);
      await tx.execute(sql`
        update lobbies set is_closed = not is_closed, changed = ${versions.get(list) ?? 0} where lobby_id = ${lobby_id}`);
    });
    await Bun.sleep(end - SECONDS * 1_000 + ((changes + 1) * 1_000) / CHANGES_PER_SECOND - performance.now());
  }
  const { thread, rest, database: of_database } = stopMeter();
  const frames = socket.frames.length - before.frames;
  const cores = (seconds: number) => `${((100 * seconds) / SECONDS).toFixed(1)} %`;
  console.log(
    `${name}: service ${cores(thread + rest)} of a core, PostgreSQL ${cores(of_database)}, ${changes} changes in ${frames} frames, ${(before.bytes / 1e6).toFixed(2)} MB`,
  );
  return { seconds: thread + rest + of_database, frames };
}

async function databaseOf({ queries }: Database): Promise<number | undefined> {
  const [row] = await queries.execute<{ pid: number }>(
    sql`select split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int as pid`,
  );
  return row?.pid;
}
