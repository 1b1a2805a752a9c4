import { and, asc, desc, eq, gt, gte, lt, lte, sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz, toMoment } from '../../../platform/database/moments.ts';
import { bump } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import { type LogPieceRow, type LogStream, serverLogChunks, servers } from '../tables.ts';

/** One stream of one server. */
export interface LogName {
  server_id: string;
  stream: LogStream;
}

const PIECES_MAX = 256;

const LATEST = toMoment(Number.POSITIVE_INFINITY);

/** A piece of a log to insert. */
export type NewPiece = Omit<LogPieceRow, 'end_offset'>;

/** The number of lines that a piece still holds. An emptied piece has its line numbers, but not its content. */
const kept_count = sql`case when octet_length(${serverLogChunks.content}) = 0 then 0 else ${serverLogChunks.line_count} end`;

/** Inserts a piece and wakes watchers. Keeps a piece that exists, which another process inserted, and then returns false. */
export async function insertPiece(queries: Queries, piece: NewPiece): Promise<boolean> {
  const rows = await queries.execute<{ is_added: boolean }>(sql`
    with ${bump([topics.log(piece.server_id, piece.stream)])},
    added as (
      insert into ${serverLogChunks} (
        server_id, stream, first_line, line_count, ts, earlier_lines, resume_point, total_bytes, content
      )
      values (
        ${piece.server_id}::uuid, ${piece.stream}, ${piece.first_line}, ${piece.line_count},
        ${timestamptz(piece.ts)}, ${sql.param(piece.earlier_lines)}::integer[], ${piece.resume_point}, ${piece.total_bytes}, ${Buffer.from(piece.content)}::bytea
      )
      on conflict do nothing
      returning first_line
    )
    select exists (select from added) as is_added from bumped`);
  return rows[0]?.is_added ?? false;
}

/** Returns the last piece of a log. */
export async function selectLastPiece(queries: Queries, name: LogName): Promise<NewPiece | undefined> {
  const [row] = await queries
    .select()
    .from(serverLogChunks)
    .where(isOf(name))
    .orderBy(desc(serverLogChunks.first_line))
    .limit(1);
  if (!row) return undefined;
  const { end_offset, ...piece } = row;
  return end_offset > 0 ? { ...piece, resume_point: piece.resume_point ?? String(end_offset) } : piece;
}

/**
 * Returns the pieces that hold the lines from a number on, in order, with emptied pieces between them; as many pieces as
 * are needed for `lines_wanted`.
 */
export async function selectPiecesFrom(
  queries: Queries,
  name: LogName,
  { line, lines_wanted }: { line: number; lines_wanted: number },
): Promise<LogPieceRow[]> {
  const { first_line, line_count } = serverLogChunks;
  // By itself, the end of a piece is no condition that the key could answer.
  const follows = and(
    isOf(name),
    gte(first_line, startOfPieceAt(name, line)),
    gt(sql`${first_line} + ${line_count}`, line),
  );
  const last = sql`(
    select max(first_line) from (
      select first_line, sum(${kept_count}) over (order by first_line) - ${kept_count} as lines_before
      from ${serverLogChunks} where ${follows} order by first_line limit ${PIECES_MAX}
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
  pieces_max: number;
  bytes_max: number;
}

/** Returns the pieces from the one that holds a line on, in order. The first exceeds the limit of bytes if it must. */
export async function selectPageFrom(
  queries: Queries,
  name: LogName,
  line: number,
  { pieces_max, bytes_max }: PageLimits,
): Promise<LogPieceRow[]> {
  const { first_line, content } = serverLogChunks;
  const start = startOfPieceAt(name, line);
  const last = sql`(
    select max(first_line) from (
      select first_line, sum(octet_length(${content})) over (order by first_line) - octet_length(${content}) as bytes_before
      from ${serverLogChunks} where ${isOf(name)} and first_line >= ${start} order by first_line limit ${pieces_max}
    ) as following where bytes_before < ${bytes_max}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), gte(first_line, start), lte(first_line, last)))
    .orderBy(asc(first_line));
}

/** Returns the last pieces that begin before a line, the newest first. */
export async function selectPageBefore(
  queries: Queries,
  name: LogName,
  line: number,
  { pieces_max, bytes_max }: PageLimits,
): Promise<LogPieceRow[]> {
  const { first_line, content } = serverLogChunks;
  const first = sql`(
    select min(first_line) from (
      select first_line,
        sum(octet_length(${content})) over (order by first_line desc) - octet_length(${content}) as bytes_after
      from ${serverLogChunks} where ${isOf(name)} and first_line < ${line} order by first_line desc limit ${pieces_max}
    ) as preceding where bytes_after < ${bytes_max}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), lt(first_line, line), gte(first_line, first)))
    .orderBy(desc(first_line));
}

/** Returns the number of the line after the last piece. With a moment, after the last piece that was complete before it. */
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

/** Returns the last pieces of a log, in order; as many as are needed for `lines_wanted`. */
export async function selectLastPieces(queries: Queries, name: LogName, lines_wanted: number): Promise<LogPieceRow[]> {
  const { first_line } = serverLogChunks;
  const first = sql`(
    select min(first_line) from (
      select first_line, sum(${kept_count}) over (order by first_line desc) - ${kept_count} as lines_after
      from ${serverLogChunks} where ${isOf(name)} order by first_line desc limit ${PIECES_MAX}
    ) as last where lines_after < ${lines_wanted}
  )`;
  return await queries
    .select()
    .from(serverLogChunks)
    .where(and(isOf(name), gte(first_line, first)))
    .orderBy(asc(first_line));
}

/**
 * Deletes the oldest pieces of a log that end within its first `total_bytes`, at most `limit` of them. Returns how many.
 */
export async function deletePiecesUpTo(
  queries: Queries,
  name: LogName,
  { total_bytes, limit }: { total_bytes: number; limit: number },
): Promise<number> {
  // `total_bytes` grows with `first_line`, so the pieces to delete are the first ones of the primary key.
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
 * Deletes up to `limit` pieces that are older than a moment, from all logs, and returns how many. The last piece of each
 * log is emptied but stays: it has the next line number and, for a server that may still write, the position in its
 * output. Concurrent processes delete different pieces, without waiting for each other.
 */
export async function deletePiecesBefore(queries: Queries, moment: Date, limit: number): Promise<number> {
  const is_last = sql`not exists (
    select from ${serverLogChunks} as later
    where later.server_id = piece.server_id and later.stream = piece.stream and later.first_line > piece.first_line
  )`;
  const has_ended = sql`exists (
    select from ${servers} as writer where writer.server_id = piece.server_id and writer.ended_at is not null
  )`;
  // The emptied piece of a server that has ended gets the latest possible time, so that no later call selects it.
  const [row] = await queries.execute<{ removed: string }>(sql`
    with old as (
      select piece.ctid as row_id, ${is_last} as is_last, ${has_ended} as has_ended from ${serverLogChunks} as piece
      where ts < ${timestamptz(moment)} and (octet_length(content) > 0 or ${has_ended} or not ${is_last})
      order by ts limit ${limit} for update of piece skip locked
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

/** The first line of the last piece that begins at a line or before it. */
function startOfPieceAt(name: LogName, line: number) {
  return sql`coalesce((select max(first_line) from ${serverLogChunks} where ${isOf(name)} and first_line <= ${line}), 0)`;
}

function isOf({ server_id, stream }: LogName) {
  return and(eq(serverLogChunks.server_id, server_id), eq(serverLogChunks.stream, stream));
}
