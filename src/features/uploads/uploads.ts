import type { Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import { type ByteRange, toReadableStream } from '../../platform/objects/objects.ts';
import type { Presigner, UploadPart } from '../../platform/objects/presign.ts';
import { pace } from '../../platform/pacing.ts';
import { DAY_MS } from '../../platform/units.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { topics } from '../topics.ts';
import { startCleaning } from './cleaning.ts';
import { type CompletionDependencies, createCompletion, type UploadPurpose } from './completion.ts';
import { contentIdOf } from './content-id.ts';
import { chargeQuota, type QuotaLimits, selectKeptBytes } from './quota-store.ts';
import {
  checkFiles,
  isShared,
  PART_BYTES,
  type Piece,
  partKey,
  partObjectsOf,
  partsOf,
  piecesOf,
  quotaBytesOf,
} from './rules.ts';
import * as store from './store.ts';
import type { UploadRow } from './tables.ts';
import { type PrepareFile, type PresignedRequest, toUpload, type UploadView } from './wire.ts';

export type { UploadPurpose } from './completion.ts';
export { contentIdOf } from './content-id.ts';
export type { QuotaLimits } from './quota-store.ts';
export { isHeaderSafe } from './rules.ts';
export type { UploadFileRow, UploadKind, UploadRow } from './tables.ts';

/** A file to upload. One whose digest is known need not be sent. */
type NewFile = PrepareFile & { sha256?: string };

/** Parts that have not arrived. */
export interface UnsentParts {
  parts: UploadPart[];
  is_multipart: boolean;
}

/** A quota shared by uploads. */
export interface Quota {
  /** The owner of the quota. */
  scope: string;
  limits: QuotaLimits;
}

export interface UploadsDependencies extends CompletionDependencies {
  presigner: Presigner;
}

export type Uploads = ReturnType<typeof createUploads>;

/** Creates the use cases of uploads: prepare, one PUT for each part, complete. */
export function createUploads(dependencies: UploadsDependencies) {
  const { database, clock, events, objects, presigner } = dependencies;
  const completion = createCompletion(dependencies);
  const purposes = new Map<UploadRow['kind'], UploadPurpose>();

  async function get(upload_id: string): Promise<UploadRow> {
    const upload = await store.selectUpload(database.queries, upload_id);
    if (!upload) throw new ServiceError('UPLOAD_NOT_FOUND', {});
    return upload;
  }

  /** Returns why an upload accepts no more bytes, or undefined. */
  async function refusalOf(upload_id: string): Promise<ServiceError | undefined> {
    const { complete_ts, completing_until } = await get(upload_id);
    if (complete_ts) {
      return new ServiceError('UPLOAD_INVALID', {
        error: 'it is complete, so its files can no longer change; prepare another upload',
      });
    }
    return completing_until && completing_until >= clock.now() ? new ServiceError('UPLOAD_BUSY', {}) : undefined;
  }

  /** Returns the requests that send parts. There may be thousands, so call it outside of a transaction. */
  async function presign({ parts, is_multipart }: UnsentParts): Promise<PresignedRequest[]> {
    const requests: PresignedRequest[] = [];
    for (const part of parts) {
      await pace();
      const { path, byte_offset, content_length } = part;
      requests.push({ path, url: presigner.sign(part, is_multipart), byte_offset, content_length });
    }
    return requests;
  }

  async function* concatenate(first: ReadableStream<Uint8Array>, others: Piece[]): AsyncGenerator<Uint8Array, void> {
    yield* first;
    for (const { key, range } of others) yield* await objects.read(key, range);
  }

  /** Counts bytes against a quota. Throws UPLOAD_QUOTA_REACHED. */
  async function charge(tx: Tx, { scope, limits }: Quota, bytes: number): Promise<void> {
    const now = clock.now();
    const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length);
    if (await chargeQuota(tx, { scope, bytes, day }, limits)) return;
    const { kept_bytes_max, day_bytes_max } = limits;
    if ((await selectKeptBytes(tx, scope)) + bytes > kept_bytes_max) {
      throw new ServiceError('UPLOAD_QUOTA_REACHED', { quota: `${kept_bytes_max} bytes in all` });
    }
    // What is larger than a whole day's quota is not accepted tomorrow either.
    const retry_after_ms = bytes <= day_bytes_max ? Date.parse(day) + DAY_MS - now.getTime() : undefined;
    throw new ServiceError('UPLOAD_QUOTA_REACHED', { quota: `${day_bytes_max} bytes a day (UTC)` }, { retry_after_ms });
  }

  /** An upload of a game with its progress. Throws UPLOAD_NOT_FOUND. Watchable. */
  const upload_view: Watchable<{ game_id: string; upload_id: string }, UploadView> = {
    topics: ({ upload_id }) => [topics.upload(upload_id)],
    async read({ game_id, upload_id }) {
      const upload = await get(upload_id);
      if (upload.game_id !== game_id) throw new ServiceError('UPLOAD_NOT_FOUND', {});
      return toUpload(upload, upload.complete_ts ? upload.content_length : upload.received_length);
    },
  };

  return {
    upload: upload_view,
    /** Sets the purpose of a kind of upload. */
    setPurpose(kind: UploadRow['kind'], purpose: UploadPurpose): void {
      purposes.set(kind, purpose);
    },
    /**
     * Prepares an upload. Returns its parts to send; `presign` returns the requests that send them. A file need not be sent
     * if a complete upload of the same game and kind has a file with its digest and length. Throws UPLOAD_INVALID, or
     * UPLOAD_QUOTA_REACHED if the quota has no room.
     */
    async prepare(
      tx: Tx,
      upload: Pick<UploadRow, 'kind' | 'is_multipart'> &
        Partial<Pick<UploadRow, 'game_id' | 'identity_id' | 'part_bytes'>>,
      files: NewFile[],
      quota?: Quota,
    ): Promise<{ upload_id: string; unsent: UnsentParts }> {
      const splitting = { is_multipart: upload.is_multipart, part_bytes: upload.part_bytes ?? null };
      checkFiles(files, splitting, objects.object_bytes_max);
      const upload_id = crypto.randomUUID();
      const owner = { game_id: upload.game_id ?? null, identity_id: upload.identity_id ?? null };
      const sharedBy = await findShared(tx, { kind: upload.kind, ...owner }, files);
      const rows = files.map((file, file_number) => {
        const shared = sharedBy(file);
        return {
          upload_id,
          file_number,
          path: file.path,
          content_type: file.content_type ?? null,
          content_length: file.content_length,
          sha256: digestOf(file),
          object_id: shared?.object_id ?? null,
          shared_upload_id: shared?.upload_id ?? null,
          shared_file_number: shared?.file_number ?? null,
        };
      });
      const content_length = bytesOf(rows);
      if (quota) await charge(tx, quota, quotaBytesOf({ content_length }));
      const times = { create_ts: clock.now(), completing_until: null, complete_ts: null, discard_ts: null };
      const counted = {
        quota_scope: quota?.scope ?? null,
        content_length,
        received_length: bytesOf(rows.filter(isShared)),
      };
      await store.insertUpload(tx, { upload_id, ...upload, ...splitting, ...owner, ...counted, ...times }, rows);
      const parts = rows.filter((row) => !isShared(row)).flatMap((row) => partsOf(row, splitting));
      return { upload_id, unsent: { parts, is_multipart: upload.is_multipart } };
    },
    presign,
    /**
     * Returns the requests that send the parts of a game's upload that have not arrived, to continue it. Throws
     * UPLOAD_NOT_FOUND.
     */
    async missingRequests(game_id: string, upload_id: string): Promise<PresignedRequest[]> {
      const upload = await get(upload_id);
      if (upload.game_id !== game_id) throw new ServiceError('UPLOAD_NOT_FOUND', {});
      if (upload.complete_ts) return [];
      const files = await store.selectFiles(database.queries, upload_id);
      const missing = files.flatMap((file) => partObjectsOf(file, upload)).filter(({ key }) => key === undefined);
      return await presign({ parts: missing.map(({ part }) => part), is_multipart: upload.is_multipart });
    },
    /** Receives the bytes of a part, sent to a URL from `prepare`. A part may be sent again. */
    async receive(url: string, content: AsyncIterable<Uint8Array>): Promise<void> {
      const part = presigner.verify(url);
      const refusal = await refusalOf(part.upload_id);
      if (refusal) throw refusal;
      const object_id = crypto.randomUUID();
      const sha256 = (await store.selectFile(database.queries, part.upload_id, part.file_number))?.file.sha256;
      await objects.put(partKey(part, object_id), verifyDigest(content, part.path, sha256), part.content_length);
      const { is_recorded, previous } = await store.recordPart(database.queries, part, object_id, clock.now());
      if (is_recorded) return await objects.remove(previous === null ? [] : [partKey(part, previous)]);
      // The upload was completed concurrently, so no file refers to the object just written.
      await objects.remove([partKey(part, object_id)]);
      throw (await refusalOf(part.upload_id)) ?? new ServiceError('UPLOAD_BUSY', {});
    },
    get,
    /**
     * Completes an upload: checks that all parts have their announced lengths and that its purpose accepts it.
     * `inTransaction` runs in the completing transaction. Returns false if the upload was complete before, so repeating
     * it is harmless. Throws UPLOAD_INCOMPLETE, or an error of the purpose or of `inTransaction`.
     */
    async complete(upload_id: string, inTransaction?: (tx: Tx) => Promise<void>): Promise<boolean> {
      const upload = await get(upload_id);
      if (upload.complete_ts) return false;
      const purpose = purposes.get(upload.kind);
      assert(purpose, `uploads of kind ${upload.kind} have a purpose`);
      const is_done = await completion.complete(upload, purpose, inTransaction);
      if (!is_done && !(await get(upload_id)).complete_ts) throw new ServiceError('UPLOAD_BUSY', {});
      return is_done;
    },
    /** Returns a game's uploads of a kind with their files, newest first. */
    listOf: (game_id: string, kind: UploadRow['kind']) => store.selectUploads(database.queries, game_id, kind),
    files: (upload_id: string) => store.selectFiles(database.queries, upload_id),
    /** Returns the id of a file's current content. */
    async contentId(upload_id: string, file_number: number): Promise<string> {
      const found = await store.selectFile(database.queries, upload_id, file_number);
      assert(found, 'a file that is read was announced');
      return contentIdOf(found.file);
    },
    /** Reads a file of a complete upload, or a range of it. */
    async read(upload_id: string, file_number: number, range?: ByteRange): Promise<ReadableStream<Uint8Array>> {
      const found = await store.selectFile(database.queries, upload_id, file_number);
      assert(found, 'a file that is read was announced');
      const [first, ...others] = piecesOf(found.file, found, range);
      assert(first, 'a file that is read has arrived');
      const content = await objects.read(first.key, first.range);
      return others.length === 0 ? content : toReadableStream(concatenate(content, others));
    },
    /**
     * Discards a complete upload. It is no longer found once the transaction commits, and its files are removed later.
     */
    discard: (tx: Tx, upload_id: string) => store.markDiscarded(tx, upload_id, clock.now()),
    /** Starts the loop that removes uploads not completed within a day, and discarded ones. */
    startCleaning: (signal: AbortSignal) =>
      startCleaning(
        {
          database,
          clock,
          events,
          objects,
          withLease: completion.withLease,
          discardInspected: async ({ upload_id, kind }) => purposes.get(kind)?.discard?.(upload_id),
        },
        signal,
      ),
  };
}

/** Returns the digest by which a file is known. One of several parts never arrives at once, so it could not be checked. */
function digestOf({ content_length, sha256 }: NewFile): string | null {
  return content_length <= PART_BYTES ? (sha256 ?? null) : null;
}

/** Returns the function that finds the file of a complete upload of the same game and kind with the content of a new file. */
async function findShared(tx: Tx, scope: Pick<UploadRow, 'game_id' | 'kind'>, files: NewFile[]) {
  const digests = new Set(files.flatMap((file) => digestOf(file) ?? []));
  const shareable = digests.size === 0 ? [] : await store.selectShareableFiles(tx, scope, [...digests]);
  const by_digest = new Map(shareable.map((file) => [file.sha256, file]));
  return (file: NewFile) => {
    const equal = by_digest.get(digestOf(file));
    return equal?.content_length === file.content_length ? equal : undefined;
  };
}

function bytesOf(files: { content_length: number }[]): number {
  return files.reduce((sum, { content_length }) => sum + content_length, 0);
}

/** Yields the content of a file. Throws UPLOAD_INVALID at its end if a digest was announced and its own differs. */
async function* verifyDigest(
  content: AsyncIterable<Uint8Array>,
  path: string,
  sha256: string | null | undefined,
): AsyncGenerator<Uint8Array, void> {
  if (sha256 == null) return yield* content;
  const hasher = new Bun.CryptoHasher('sha256');
  for await (const chunk of content) {
    hasher.update(chunk);
    yield chunk;
  }
  if (hasher.digest('hex') === sha256) return;
  throw new ServiceError('UPLOAD_INVALID', {
    error: `${JSON.stringify(path)} does not have its announced sha256; send the announced file, or prepare another upload`,
  });
}
