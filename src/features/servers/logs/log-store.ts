import { and, asc, desc, eq, gt, gte, lt, lte, sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz, toMoment } from '../../../platform/database/moments.ts';
import { bump } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import { type LogChunkRow, type LogStream, serverLogChunks, servers } from '../tables.ts';

/** One stream of one server. */
export interface LogName {
  server_id: string;
  stream: LogStream;
}

const CHUNKS_MAX = 256;

const LATEST = toMoment(Number.POSITIVE_INFINITY);

/** A chunk of a log. */
export type LogChunk = Omit<LogChunkRow, 'end_offset'>;

/** The number of lines that a chunk still holds. An emptied chunk has its line numbers, but not its content. */
const KEPT_COUNT = sql`case when octet_length(${serverLogChunks.content}) = 0 then 0 else ${serverLogChunks.line_count} end`;

/** Inserts a chunk and wakes watchers. Keeps a chunk that exists, which another process inserted, and then returns false. */
export async function insertChunk(queries: Queries, chunk: LogChunk): Promise<boolean> {
  const rows = await queries.execute<{ is_added: boolean }>(sql`
    with ${bump([topics.log(chunk.server_id, chunk.stream)])},
    added as (
      insert into ${serverLogChunks} (
        server_id, stream, first_line, line_count, ts, earlier_lines, resume_point, total_bytes, content
      )
      values (
        ${chunk.server_id}::uuid, ${chunk.stream}, ${chunk.first_line}, ${chunk.line_count},
        ${timestamptz(chunk.ts)}, ${sql.param(chunk.earlier_lines)}::integer[], ${chunk.resume_point}, ${chunk.total_bytes}, ${Buffer.from(chunk.content)}::bytea
      )
      on conflict do nothing
      returning first_line
    )
    select exists (select from added) as is_added from bumped`);
  return rows[0]?.is_added ?? false;
}

/** Returns the last chunk of a log. */
export async function selectLastChunk(queries: Queries, name: LogName): Promise<LogChunk | undefined> {
  const [row] = await queries
    .select()
    .from(serverLogChunks)
    .where(isOf(name))
    .orderBy(desc(serverLogChunks.first_line))
    .limit(1);
  if (!row) return undefined;
  const { end_offset, ...chunk } = row;
  return end_offset > 0 ? { ...chunk, resume_point: chunk.resume_point ?? String(end_offset) } : chunk;
}

/**
 * Returns the chunks that hold the lines from a number on, in order, with emptied chunks between them; as many chunks as
 * are needed for `lines_wanted`.
 */
export async function selectChunksFrom(
  queries: Queries,
  name: LogName,
  { line, lines_wanted }: { line: number; lines_wanted: number },
): Promise<LogChunkRow[]> {
  const { first_line, line_count } = serverLogChunks;
  // By itself, the end of a chunk is no condition that the key could answer.
  const follows = and(
    isOf(name),
    gte(first_line, startOfChunkAt(name, line)),
    gt(sql`${first_line} + ${line_count}`, line),
  );
  const last = sql`(
    select max(first_line) from (
      select first_line, sum(${KEPT_COUNT}) over (order by first_line) - ${KEPT_COUNT} as lines_before
      from ${serverLogChunks} where ${follows} order by first_line limit ${CHUNKS_MAX}
    ) as following where lines_before < ${lines_wanted}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(follows, lte(first_line, last)))
    .orderBy(asc(first_line));
}

/** How much of a log to read at a time. */
export interface PageLimits {
  chunks_max: number;
  bytes_max: number;
}

/** Returns the chunks from the one that holds a line on, in order. The first exceeds the limit of bytes if it must. */
export async function selectPageFrom(
  queries: Queries,
  name: LogName,
  line: number,
  { chunks_max, bytes_max }: PageLimits,
): Promise<LogChunkRow[]> {
  const { first_line, content } = serverLogChunks;
  const start = startOfChunkAt(name, line);
  const last = sql`(
    select max(first_line) from (
      select first_line, sum(octet_length(${content})) over (order by first_line) - octet_length(${content}) as bytes_before
      from ${serverLogChunks} where ${isOf(name)} and first_line >= ${start} order by first_line limit ${chunks_max}
    ) as following where bytes_before < ${bytes_max}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), gte(first_line, start), lte(first_line, last)))
    .orderBy(asc(first_line));
}

/** Returns the last chunks that begin before a line, the newest first. */
export async function selectPageBefore(
  queries: Queries,
  name: LogName,
  line: number,
  { chunks_max, bytes_max }: PageLimits,
): Promise<LogChunkRow[]> {
  const { first_line, content } = serverLogChunks;
  const first = sql`(
    select min(first_line) from (
      select first_line,
        sum(octet_length(${content})) over (order by first_line desc) - octet_length(${content}) as bytes_after
      from ${serverLogChunks} where ${isOf(name)} and first_line < ${line} order by first_line desc limit ${chunks_max}
    ) as preceding where bytes_after < ${bytes_max}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), lt(first_line, line), gte(first_line, first)))
    .orderBy(desc(first_line));
}

/** Returns the number of the line after the last chunk. With a moment, after the last chunk that was complete before it. */
export async function selectEnd(queries: Queries, name: LogName, moment?: Date): Promise<number> {
  const { first_line, line_count, ts } = serverLogChunks;
  const [row] = await queries
    .select({ first_line, line_count })
    .from(serverLogChunks)
    .where(and(isOf(name), moment && lt(ts, sql`${timestamptz(moment)}`)))
    .orderBy(desc(first_line))
    .limit(1);
  return row ? row.first_line + row.line_count : 0;
}

/** Returns the last chunks of a log, in order; as many as are needed for `lines_wanted`. */
export async function selectLastChunks(queries: Queries, name: LogName, lines_wanted: number): Promise<LogChunkRow[]> {
  const { first_line } = serverLogChunks;
  const first = sql`(
    select min(first_line) from (
      select first_line, sum(${KEPT_COUNT}) over (order by first_line desc) - ${KEPT_COUNT} as lines_after
      from ${serverLogChunks} where ${isOf(name)} order by first_line desc limit ${CHUNKS_MAX}
    ) as last where lines_after < ${lines_wanted}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), gte(first_line, first)))
    .orderBy(asc(first_line));
}

/**
 * Deletes the oldest chunks of a log that end within its first `total_bytes`, at most `limit` of them. Returns how many.
 */
export async function deleteChunksUpTo(
  queries: Queries,
  name: LogName,
  { total_bytes, limit }: { total_bytes: number; limit: number },
): Promise<number> {
  // `total_bytes` grows with `first_line`, so the chunks to delete are the first ones of the primary key.
  const oldest = queries
    .select({ first_line: serverLogChunks.first_line })
    .from(serverLogChunks)
    .where(isOf(name))
    .orderBy(asc(serverLogChunks.first_line))
    .limit(limit);
  const deleted = await queries
    .delete(serverLogChunks)
    .where(
      and(isOf(name), sql`${serverLogChunks.first_line} in ${oldest}`, lte(serverLogChunks.total_bytes, total_bytes)),
    )
    .returning({ first_line: serverLogChunks.first_line });
  return deleted.length;
}

/**
 * Deletes up to `limit` chunks that are older than a moment, from all logs, and returns how many. The last chunk of each
 * log is emptied but stays: it has the next line number and, for a server that may still write, the position in its
 * output. Concurrent processes delete different chunks, without waiting for each other.
 */
export async function deleteChunksBefore(queries: Queries, moment: Date, limit: number): Promise<number> {
  const is_last = sql`not exists (
    select from ${serverLogChunks} as later
    where later.server_id = chunk.server_id and later.stream = chunk.stream and later.first_line > chunk.first_line
  )`;
  const has_ended = sql`exists (
    select from ${servers} as writer where writer.server_id = chunk.server_id and writer.ended_at is not null
  )`;
  // The emptied chunk of a server that has ended gets the latest possible time, so that no later call selects it.
  const [row] = await queries.execute<{ removed: string }>(sql`
    with old as (
      select chunk.ctid as row_id, ${is_last} as is_last, ${has_ended} as has_ended from ${serverLogChunks} as chunk
      where ts < ${timestamptz(moment)} and (octet_length(content) > 0 or ${has_ended} or not ${is_last})
      order by ts limit ${limit} for update of chunk skip locked
    ),
    emptied as (
      update ${serverLogChunks} set content = '', earlier_lines = null,
        ts = case when ctid = any(array(select row_id from old where has_ended)) then ${timestamptz(LATEST)} else ts end
      where ctid = any(array(select row_id from old where is_last)) returning 1
    ),
    deleted as (
      delete from ${serverLogChunks} where ctid = any(array(select row_id from old where not is_last)) returning 1
    )
    select (select count(*) from emptied) + (select count(*) from deleted) as removed`);
  return Number(row?.removed ?? 0);
}

/** The first line of the last chunk that begins at a line or before it. */
function startOfChunkAt(name: LogName, line: number) {
  return sql`coalesce((select max(first_line) from ${serverLogChunks} where ${isOf(name)} and first_line <= ${line}), 0)`;
}

function isOf({ server_id, stream }: LogName) {
  return and(eq(serverLogChunks.server_id, server_id), eq(serverLogChunks.stream, stream));
}
