import { and, asc, desc, eq, gt, inArray, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import type { UploadPart } from '../../platform/objects/presign.ts';
import { bump, deleteTopics, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type Splitting, type UploadFileRow, type UploadRow, uploadFiles, uploads } from './tables.ts';

const UPLOADS_MAX = 1_000;

/** A file to insert, with the object that it shares with a file of an earlier upload, if any. */
type NewUploadFile = Omit<UploadFileRow, 'object_ids'> & { object_id: string | null };

export async function insertUpload(tx: Tx, upload: UploadRow, files: NewUploadFile[]): Promise<void> {
  await tx.insert(uploads).values(upload);
  // One array per column, so that the text of the statement does not depend on the number of files.
  const column = <Key extends keyof NewUploadFile>(key: Key) => sql.param(files.map((file) => file[key]));
  await tx.execute(sql`
    insert into ${uploadFiles} (upload_id, game_id, file_number, path, content_type, content_length, sha256,
      receipts, shared_upload_id, shared_file_number)
    select ${upload.upload_id}::uuid, ${upload.game_id}::uuid, file.file_number, file.path, file.content_type,
      file.content_length, file.sha256,
      array_remove(array[file.object_id], null), file.shared_upload_id, file.shared_file_number
    from unnest(
      ${column('file_number')}::int[], ${column('path')}::text[],
      ${column('content_type')}::text[], ${column('content_length')}::bigint[], ${column('sha256')}::text[],
      ${column('object_id')}::uuid[], ${column('shared_upload_id')}::uuid[], ${column('shared_file_number')}::int[]
    ) as file (file_number, path, content_type, content_length, sha256, object_id, shared_upload_id, shared_file_number)`);
}

/** A file of one part, of a complete upload, whose object other files may share. */
type ShareableFile = Pick<NewUploadFile, 'sha256' | 'content_length' | 'object_id'> & {
  upload_id: string;
  file_number: number;
};

/**
 * Returns one file of complete uploads of a game and kind for each of the digests that they have. Each digest is looked up
 * on its own: a join would read the same file of all earlier uploads, or all files of one upload for each digest.
 */
export async function selectShareableFiles(
  queries: Queries,
  { game_id, kind }: { game_id: string | null; kind: UploadRow['kind'] },
  digests: string[],
): Promise<ShareableFile[]> {
  return await queries.execute<ShareableFile>(sql`
    select shareable.* from unnest(${sql.param(digests)}::text[]) as wanted (sha256)
    cross join lateral (
      select file.sha256, file.content_length::float8 as content_length, file.receipts[1] as object_id,
        coalesce(file.shared_upload_id, file.upload_id) as upload_id,
        coalesce(file.shared_file_number, file.file_number) as file_number
      -- "offset 0" keeps both conditions inside, so the files of other games are not read.
      from (
        select * from ${uploadFiles} as equal where equal.game_id = ${game_id} and equal.sha256 = wanted.sha256 offset 0
      ) as file
      join ${uploads} as upload on upload.upload_id = file.upload_id
      where upload.game_id = ${game_id} and upload.kind = ${kind}
        and upload.complete_ts is not null and upload.discard_ts is null
      limit 1
    ) as shareable`);
}

/** Returns an upload; undefined if it is discarded. */
export async function selectUpload(queries: Queries, upload_id: string): Promise<UploadRow | undefined> {
  const [row] = await queries
    .select()
    .from(uploads)
    .where(and(eq(uploads.upload_id, upload_id), isNull(uploads.discard_ts)));
  return row;
}

export async function selectFiles(queries: Queries, upload_id: string): Promise<UploadFileRow[]> {
  const rows = await queries
    .select()
    .from(uploadFiles)
    .where(eq(uploadFiles.upload_id, upload_id))
    .orderBy(asc(uploadFiles.file_number));
  return rows.map(toFile);
}

/** Drizzle reads null in an array as the text NULL. */
function toFile({ game_id, ...row }: typeof uploadFiles.$inferSelect): UploadFileRow {
  return { ...row, object_ids: row.object_ids.map((object_id) => (object_id === 'NULL' ? null : object_id)) };
}

/** Returns a file, and how it is split. */
export async function selectFile(
  queries: Queries,
  upload_id: string,
  file_number: number,
): Promise<({ file: UploadFileRow } & Splitting) | undefined> {
  const [row] = await queries
    .select({ file: uploadFiles, is_multipart: uploads.is_multipart, part_bytes: uploads.part_bytes })
    .from(uploadFiles)
    .innerJoin(uploads, eq(uploads.upload_id, uploadFiles.upload_id))
    .where(and(eq(uploadFiles.upload_id, upload_id), eq(uploadFiles.file_number, file_number)));
  return row && { ...row, file: toFile(row.file) };
}

/**
 * Records the object that holds a part, unless the upload is complete or being completed. Returns the id of the object
 * that held the part before.
 */
export async function recordPart(
  queries: Queries,
  { upload_id, file_number, part_number, content_length }: UploadPart,
  object_id: string,
  now: Date,
): Promise<{ is_recorded: boolean; previous: string | null }> {
  const index = sql`${part_number + 1}::int`;
  const rows = await queries.execute<{ previous: string | null }>(sql`
    with ${bump([topics.upload(upload_id)])},
    before as (
      select file.upload_id, file.file_number, file.receipts[${index}] as previous
      from ${uploads} join ${uploadFiles} file on file.upload_id = ${uploads.upload_id}
      where ${uploads.upload_id} = ${upload_id} and file.file_number = ${file_number} and ${isClaimable(now)}
        and (select count(*) from bumped) > 0
      for no key update of ${uploads}, file
    ),
    counted as (
      update ${uploads} as upload set received_length = upload.received_length + ${content_length}
      from before where upload.upload_id = before.upload_id and before.previous is null
    )
    update ${uploadFiles} as file
    -- The first is named so that the array starts at 1, whichever part arrives first.
    set receipts[1] = file.receipts[1], receipts[${index}] = ${object_id}::uuid
    from before where file.upload_id = before.upload_id and file.file_number = before.file_number
    returning before.previous`);
  return { is_recorded: rows.length > 0, previous: rows[0]?.previous ?? null };
}

/** Returns a game's uploads of a kind with their first files, newest first. */
export async function selectUploads(queries: Queries, game_id: string, kind: UploadRow['kind']) {
  return await queries
    .select({ upload: uploads, path: uploadFiles.path })
    .from(uploads)
    .innerJoin(uploadFiles, and(eq(uploadFiles.upload_id, uploads.upload_id), eq(uploadFiles.file_number, 0)))
    .where(and(eq(uploads.game_id, game_id), eq(uploads.kind, kind), isNull(uploads.discard_ts)))
    .orderBy(desc(uploads.create_ts), desc(uploads.upload_id))
    .limit(UPLOADS_MAX);
}

/** The exclusive right of a request to complete an upload. A later claim has a later end, so the end tells them apart. */
export interface CompletionLease {
  upload_id: string;
  /** Its end, and the ends that it may have because requests to extend it are unanswered. */
  ends: readonly Date[];
}

const hasLease = ({ upload_id, ends }: CompletionLease) =>
  and(eq(uploads.upload_id, upload_id), inArray(uploads.completing_until, [...ends]));

/** Claims the right to complete an upload until a given time, unless another request has it or the upload is complete. */
export async function claimCompletion(
  queries: Queries,
  upload_id: string,
  { now, until }: { now: Date; until: Date },
): Promise<boolean> {
  const rows = await queries
    .update(uploads)
    .set({ completing_until: until })
    .where(and(eq(uploads.upload_id, upload_id), isClaimable(now)))
    .returning({ upload_id: uploads.upload_id });
  return rows.length > 0;
}

/** Extends a lease. Returns false if another request has the right by now. */
export async function extendCompletion(queries: Queries, lease: CompletionLease, until: Date): Promise<boolean> {
  const rows = await queries
    .update(uploads)
    .set({ completing_until: until })
    .where(hasLease(lease))
    .returning({ upload_id: uploads.upload_id });
  return rows.length > 0;
}

/** Ends a lease, unless another request has the right by now. */
export async function releaseCompletion(queries: Queries, lease: CompletionLease): Promise<void> {
  await queries.update(uploads).set({ completing_until: null }).where(hasLease(lease));
}

/** Marks an upload as complete. Returns false if another request has the right to do so by now. */
export async function markComplete(tx: Tx, lease: CompletionLease, now: Date): Promise<boolean> {
  return await endLease(tx, lease, { complete_ts: now });
}

/**
 * Discards an upload that is not complete. From then on no request can complete it. Returns false if another request has the
 * right to complete it by now.
 */
export async function markAbandoned(tx: Tx, lease: CompletionLease, now: Date): Promise<boolean> {
  return await endLease(tx, lease, { discard_ts: now });
}

async function endLease(
  tx: Tx,
  lease: CompletionLease,
  outcome: { complete_ts: Date } | { discard_ts: Date },
): Promise<boolean> {
  await touch(tx, [topics.upload(lease.upload_id)]);
  const rows = await tx
    .update(uploads)
    .set({ ...outcome, completing_until: null })
    .where(hasLease(lease))
    .returning({ upload_id: uploads.upload_id });
  return rows.length > 0;
}

/** An upload to remove: one that was abandoned or discarded. */
export type UnusedUpload = Pick<UploadRow, 'upload_id' | 'game_id' | 'kind'>;

/** An upload that was not completed. */
export type AbandonedUpload = UnusedUpload & Pick<UploadRow, 'create_ts'>;

interface SelectAbandoned {
  before: Date;
  now: Date;
  /** The last one of the previous page. */
  last: AbandonedUpload | undefined;
  limit: number;
}

/** Returns uploads begun before a given time that are neither complete nor being completed, oldest first. */
export async function selectAbandoned(
  queries: Queries,
  { before, now, last, limit }: SelectAbandoned,
): Promise<AbandonedUpload[]> {
  const { upload_id, game_id, kind, create_ts } = uploads;
  const is_later =
    last && or(gt(create_ts, last.create_ts), and(eq(create_ts, last.create_ts), gt(upload_id, last.upload_id)));
  return await queries
    .select({ upload_id, game_id, kind, create_ts })
    .from(uploads)
    .where(and(isClaimable(now), lt(create_ts, before), is_later))
    .orderBy(asc(create_ts), asc(upload_id))
    .limit(limit);
}

/** Deletes a discarded upload, and the build or site whose files it has. Returns the deleted row. */
export async function deleteUpload(tx: Tx, unused: UnusedUpload): Promise<UploadRow | undefined> {
  const { upload_id } = unused;
  await touch(tx, [topics.upload(upload_id), ...listTopicsOf(unused)]);
  const [row] = await tx
    .delete(uploads)
    .where(and(eq(uploads.upload_id, upload_id), isNotNull(uploads.discard_ts)))
    .returning();
  if (row) await deleteTopics(tx, [topics.upload(upload_id)]);
  return row;
}

/** Returns the topics of the lists that show the build or site of an upload. */
function listTopicsOf({ game_id, kind }: UnusedUpload): string[] {
  if (game_id === null) return [];
  if (kind === 'build') return [topics.buildsOf(game_id)];
  return kind === 'site' ? [topics.sitesOf(game_id)] : [];
}

/** Discards a complete upload. It is no longer found once the transaction commits. */
export async function markDiscarded(tx: Tx, upload_id: string, now: Date): Promise<void> {
  await touch(tx, [topics.upload(upload_id)]);
  await tx
    .update(uploads)
    .set({ discard_ts: now })
    .where(and(eq(uploads.upload_id, upload_id), isNotNull(uploads.complete_ts), isNull(uploads.discard_ts)));
}

/** Returns discarded uploads ordered by id, after the id `after`. */
export async function selectDiscarded(
  queries: Queries,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<UnusedUpload[]> {
  return await queries
    .select({ upload_id: uploads.upload_id, game_id: uploads.game_id, kind: uploads.kind })
    .from(uploads)
    .where(and(isNotNull(uploads.discard_ts), after === undefined ? undefined : gt(uploads.upload_id, after)))
    .orderBy(asc(uploads.upload_id))
    .limit(limit);
}

/**
 * The statement that forgets the parts that had arrived of incomplete uploads, because a backup does not have their objects.
 * A file that shares the object of a complete upload keeps it. The database of an older release has other columns.
 */
export const FORGET_UNFINISHED = `
  do $$ begin
    if exists (
      select from information_schema.columns where table_name = 'upload_files' and column_name = 'shared_upload_id'
    ) then
      update upload_files as file set receipts = '{}' from uploads as upload
      where upload.upload_id = file.upload_id and upload.complete_ts is null and file.shared_upload_id is null;
      update uploads set received_length = (
        select coalesce(sum(file.content_length), 0) from upload_files as file
        where file.upload_id = uploads.upload_id and file.shared_upload_id is not null
      ) where complete_ts is null;
    end if;
  end $$`;

/** Matches uploads that are neither complete, nor being completed, nor discarded. */
function isClaimable(now: Date) {
  const is_unclaimed = or(isNull(uploads.completing_until), lt(uploads.completing_until, now));
  return and(isNull(uploads.complete_ts), isNull(uploads.discard_ts), is_unclaimed);
}
