import { sql } from 'drizzle-orm';
import { copyLobbies } from '../../tests/support/lobbies/lobby-copies.ts';
import { openDatabaseOf } from './database.ts';
import { atMost, calm, exactly, type Fault, secondsSince } from './fault.ts';
import type { Subject } from './subject.ts';

const LOBBIES = 50_000;
const LOBBIES_QUICK = 5_000;
const LOBBIES_PER_STATEMENT = 2_500;
const FINDS_PER_LOBBY = 8;
const LINES_PER_SERVER = 10;
const MONTH_MS = 30 * 86_400_000;
/** Rows are written a little younger than the limit, and pass it once all are written. */
const WRITTEN_S_MAX = 100;
const WRITTEN_S_MAX_QUICK = 30;
/** A day of a million finds must be removed in far less than a day. */
const FINDS_PER_DAY = 1_000_000;
const DAY_GONE_S_MAX = 3_600;
/** The service checks once a minute; the rest is the time of the removal. */
const GONE_S_WAITED = 300;

export const history: Fault = {
  name: 'history',
  title: `ended lobbies become too old, each with a server, ${FINDS_PER_LOBBY} finds and usage of ten minutes`,
  async run(context) {
    const subject = await context.start();
    const database = context.opened.use(openDatabaseOf(subject.home));
    await context.phase(subject, 'calm', calm);
    const lobbies = context.is_quick ? LOBBIES_QUICK : LOBBIES;
    const written_s_max = context.is_quick ? WRITTEN_S_MAX_QUICK : WRITTEN_S_MAX;
    const started = performance.now();
    const ended_at = new Date(Date.now() - MONTH_MS + written_s_max * 1_000).toISOString();
    const bytes = await fill(database, { lobbies, ended_at });
    // If this took longer, rows would be removed while others are written, and the figures below would be wrong.
    context.expect(atMost('the rows are written, after', written_s_max, secondsSince(started), 's'));
    for (const [what, size] of bytes) context.note(`bytes of ${what}, indexes included`, size.toFixed(0));

    context.note('bytes of a log line of 80, alone in its piece', (await measureLogLine(database, 1)).toFixed(0));
    context.note('bytes of a log line of 80, with 63 others', (await measureLogLine(database, 64)).toFixed(0));
    context.note('lobbies exported', `${Math.round(await exportHistory(subject, ended_at))} a second`);

    const countServersLeft = async () =>
      await database.count(`select count(*) from servers where ended_at = '${ended_at}'`);
    const countPlayersLeft = async () =>
      await database.count(`select count(*) from players where create_ts = '${ended_at}'`);
    const waited = performance.now();
    const isLate = () => secondsSince(waited) > GONE_S_WAITED;
    const players = await countPlayersLeft();
    while (!isLate() && (await countPlayersLeft()) === players) await Bun.sleep(100);
    const remove = async () => {
      const started = performance.now();
      while (!isLate() && (await countServersLeft()) > 0) await Bun.sleep(500);
      return { seconds: secondsSince(started), left: await countServersLeft() };
    };
    const options = { deadline_s: GONE_S_WAITED + 10 };
    const { result } = await context.phase(subject, 'while it is removed', remove, options);
    const day_s = (result.seconds / (lobbies * FINDS_PER_LOBBY)) * FINDS_PER_DAY;
    context.expect(exactly(`servers left, of ${lobbies}`, 0, result.left));
    context.note('finds removed', `${Math.round((lobbies * FINDS_PER_LOBBY) / result.seconds)} a second`);
    context.expect(atMost('a day of a million finds, removed in', DAY_GONE_S_MAX, day_s, 's'));
  },
};

/** Writes lobbies that ended at this moment. Returns the bytes of each kind of row. */
async function fill(
  { queries, count, execute }: ReturnType<typeof openDatabaseOf>,
  { lobbies, ended_at }: { lobbies: number; ended_at: string },
): Promise<[string, number][]> {
  // The lobbies that were written last, which are not metered yet.
  const written = `(
    select lobby_id, namespace_id, server_id from lobbies
    where stop_ts = '${ended_at}' and not exists (select from server_meters where server_meters.server_id = lobbies.server_id)
  ) as written`;
  const sizeOf = (table: string) => count(`select pg_total_relation_size('${table}')`);
  const steps: [what: string, tables: string[], per_lobby: number, statement: (copies: number) => Promise<unknown>][] =
    [
      [
        'a server',
        ['servers'],
        1,
        // Without "offset 0", each column would make a copy of its own.
        (copies) =>
          execute(`
          insert into servers select (copy).* from (
            select jsonb_populate_record(server, jsonb_build_object(
              'server_id', uuidv7(interval '-31 days'), 'node_id', gen_random_uuid(), 'created_at', '${ended_at}',
              'destroyed_at', '${ended_at}', 'ended_at', '${ended_at}')) as copy
            from servers as server, generate_series(1, ${copies})
            where server_id = (select server_id from servers where ended_at is null limit 1)
            offset 0
          ) as copies`),
      ],
      [
        'a lobby',
        ['lobbies'],
        1,
        () =>
          queries.execute(
            copyLobbies(
              sql`lobbies as lobby, (
              select server_id from servers where ended_at = ${ended_at}::timestamptz
                and not exists (select from lobbies where lobbies.server_id = servers.server_id)
            ) as old where lobby_id = (select lobby_id from lobbies where stop_ts is null limit 1)`,
              sql`jsonb_build_object('lobby_id', uuidv7(interval '-31 days'), 'server_id', old.server_id, 'code', null,
              'player_count', 0, 'create_ts', ${ended_at}::text, 'stop_ts', ${ended_at}::text)`,
            ),
          ),
      ],
      [
        'a find',
        ['players'],
        FINDS_PER_LOBBY,
        () =>
          execute(`
          insert into players (player_id, lobby_id, namespace_id, address, client, create_ts, seat_deadline_ts, connect_ts, remove_ts, remove_reason)
          select uuidv7(interval '-31 days'), lobby_id, namespace_id, '192.0.2.123', '192.0.2.123',
            '${ended_at}', now(), now(), now(), 'disconnected'
          from ${written}, generate_series(1, ${FINDS_PER_LOBBY})`),
      ],
      [
        'usage, of a server and ten minutes',
        ['server_usage'],
        1,
        () =>
          execute(`
          insert into server_usage (server_id, interval_start, game_id, datacenter_id, cpu_ms, from_ts, until_ts)
          select server_id, to_timestamp(floor(extract(epoch from ended_at) / 600) * 600), game_id, datacenter_id, 1000, ended_at, ended_at + interval '1 min'
          from servers join ${written} using (server_id)`),
      ],
      [
        'topics of a lobby and its server',
        ['topics'],
        1,
        () =>
          execute(`
          insert into topics (topic, version)
          select unnest(array['lobby:' || lobby_id, 'seats:' || lobby_id, 'server:' || server_id,
            'log:' || server_id || ':std_out', 'log:' || server_id || ':std_err']), 5 from ${written}`),
      ],
      [
        'marks of logs and the meter of a server',
        ['server_log_chunks', 'server_meters'],
        1,
        () =>
          execute(`
          with marks as (
            insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
            select server_id, unnest(array['std_out', 'std_err']), ${LINES_PER_SERVER}, 1, 'infinity', 100, 100, '' from ${written})
          insert into server_meters (server_id, cpu_ms, read_ts) select server_id, 1000, now() from ${written}`),
      ],
    ];
  const bytes = new Map<string, number>();
  for (let done = 0; done < lobbies; done += LOBBIES_PER_STATEMENT) {
    for (const [what, tables, per_lobby, write] of steps) {
      const sizes = () => Promise.all(tables.map(sizeOf)).then((all) => all.reduce((sum, size) => sum + size, 0));
      const before = await sizes();
      await write(LOBBIES_PER_STATEMENT);
      const added = ((await sizes()) - before) / (per_lobby * lobbies);
      bytes.set(what, (bytes.get(what) ?? 0) + added);
    }
  }
  await execute('analyze');
  return [...bytes];
}

/** Returns the bytes of a line in a log that is stored in pieces of this many lines. */
async function measureLogLine({ count, execute }: ReturnType<typeof openDatabaseOf>, lines: number): Promise<number> {
  const pieces = 2_000;
  const size = async () => await count(`select pg_total_relation_size('server_log_chunks')`);
  await execute('vacuum full server_log_chunks');
  const before = await size();
  await execute(`
    insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
    select server_id, 'std_out', 1000000000 + number * ${lines}, ${lines}, now(), 1, 1, convert_to((
      select string_agg(rpad(md5((number * 64 + line)::text), 79, md5(line::text)) || chr(10), '') from generate_series(1, ${lines}) as line
    ), 'utf8')
    from (select server_id from servers where ended_at is null limit 1) as writer, generate_series(1, ${pieces}) as number`);
  const bytes = (await size()) - before;
  await execute('delete from server_log_chunks where first_line >= 1000000000');
  return bytes / pieces / lines;
}

/** Downloads the history of the lobbies that ended at this moment. Returns how many a second. */
async function exportHistory({ program, bystander }: Subject, ended_at: string): Promise<number> {
  const end = Date.parse(ended_at);
  const path = `/cloud/games/${bystander.game_id}/matchmaker/lobbies/export-history`;
  const body = { query_start: end - 1_000, query_end: end + 1_000 };
  const { url } = await program.api.ok('POST', path, { token: bystander.cloud_token, body });
  const started = performance.now();
  const text = await (await fetch(url)).text();
  return (text.split('\n').length - 2) / secondsSince(started);
}
