import { ServiceError } from '../../platform/errors.ts';
import type { ByteRange } from '../../platform/objects/objects.ts';
import type { UploadPart } from '../../platform/objects/presign.ts';
import type { Splitting, UploadFileRow } from './tables.ts';

/** Size of the reference API. */
export const PART_BYTES = 100 * 1024 ** 2;
export const PARTS_MAX = 10_000;
/** Bytes in UTF-8, as object storages count. */
export const PATH_BYTES_MAX = 1_024;

/** Returns whether a header can carry a content type: printable ASCII. */
export function isHeaderSafe(content_type: string): boolean {
  return /^[\x20-\x7e]*$/.test(content_type);
}

/** Every upload counts as at least this many bytes, so that a quota also limits the number of uploads. */
const QUOTA_BYTES_MIN = 16 * 1_024;

/** Returns the bytes that an upload counts against its quota. */
export function quotaBytesOf({ content_length }: { content_length: number }): number {
  return Math.max(content_length, QUOTA_BYTES_MIN);
}

/** Returns how a file is split: into parts of equal length, 100 MiB by default, or not at all. An empty file is one empty part. */
function splitOf(content_length: number, { is_multipart, part_bytes: wanted_bytes }: Splitting) {
  const part_bytes = is_multipart ? (wanted_bytes ?? PART_BYTES) : Math.max(content_length, 1);
  return { part_bytes, parts: Math.max(1, Math.ceil(content_length / part_bytes)) };
}

/** Returns the parts of a file, in order. */
export function partsOf(
  file: { upload_id: string; file_number: number; path: string; content_length: number },
  splitting: Splitting,
): UploadPart[] {
  const { upload_id, file_number, path, content_length } = file;
  const { part_bytes, parts } = splitOf(content_length, splitting);
  return Array.from({ length: parts }, (_, part_number) => {
    const byte_offset = part_number * part_bytes;
    const length = Math.min(part_bytes, content_length - byte_offset);
    return { upload_id, file_number, part_number, path, byte_offset, content_length: length };
  });
}

/** Returns the key of the object of a part. Each time that the part is sent, it is another object. */
export function partKey({ upload_id, file_number, part_number }: UploadPart, object_id: string): string {
  return `${upload_id}/${file_number}.${part_number}.${object_id}`;
}

/** A part of a file, and its object. */
export interface PartObject {
  part: UploadPart;
  /** The key of the object; undefined until the part has arrived. */
  key: string | undefined;
}

/** Throws UPLOAD_INVALID if files cannot be uploaded. `object_bytes_max`: the largest object that the storage takes. */
export function checkFiles(
  files: readonly { path: string; content_type?: string | undefined; content_length: number }[],
  splitting: Splitting,
  object_bytes_max: number,
): void {
  const invalid = (error: string) => new ServiceError('UPLOAD_INVALID', { error });
  if (files.some(({ path }) => Buffer.byteLength(path) > PATH_BYTES_MAX)) {
    throw invalid(`a path is longer than ${PATH_BYTES_MAX} bytes; shorten it`);
  }
  const unsafe = files.find(({ content_type = '' }) => !isHeaderSafe(content_type));
  if (unsafe) {
    const expected = 'must have only printable ASCII characters, like "text/html; charset=utf-8"';
    throw invalid(`the content_type of ${JSON.stringify(unsafe.path)} ${expected}`);
  }
  const parts = files.reduce((sum, { content_length }) => sum + splitOf(content_length, splitting).parts, 0);
  if (parts > PARTS_MAX) throw invalid(`it has more than ${PARTS_MAX} parts; send fewer or smaller files`);
  if (!splitting.is_multipart && files.some(({ content_length }) => content_length > object_bytes_max)) {
    throw invalid(`a file of more than ${object_bytes_max} bytes must be sent in parts (multipart_upload)`);
  }
}

/** The columns that locate the content of a file that has arrived. */
export type ArrivedFile = Pick<UploadFileRow, 'upload_id' | 'file_number' | 'object_ids'>;

/**
 * Returns the key of the only object of a file whose parts an early release joined, before migration 0009; undefined for any
 * other file that has arrived.
 */
export function joinedKeyOf({ upload_id, file_number, object_ids }: ArrivedFile): string | undefined {
  return object_ids.length === 0 ? `${upload_id}/${file_number}` : undefined;
}

/** Returns whether a file has no objects of its own. */
export function isShared({ shared_upload_id }: Pick<UploadFileRow, 'shared_upload_id'>): boolean {
  return shared_upload_id !== null;
}

/** Returns the parts of a file with their objects, in order. */
export function partObjectsOf(file: UploadFileRow, splitting: Splitting): PartObject[] {
  const holder = {
    upload_id: file.shared_upload_id ?? file.upload_id,
    file_number: file.shared_file_number ?? file.file_number,
  };
  return partsOf(file, splitting).map((part) => {
    const object_id = file.object_ids[part.part_number];
    return { part, key: object_id ? partKey({ ...part, ...holder }, object_id) : undefined };
  });
}

/** Returns the own objects of a file of a complete upload, with their lengths in bytes. */
export function objectsOf(file: UploadFileRow, splitting: Splitting): { key: string; length: number }[] {
  if (isShared(file)) return [];
  const joined_key = joinedKeyOf(file);
  if (joined_key !== undefined) return [{ key: joined_key, length: file.content_length }];
  return partObjectsOf(file, splitting).flatMap(({ part, key }) =>
    key === undefined ? [] : [{ key, length: part.content_length }],
  );
}

/** An object, or a range of it. */
export interface Piece {
  key: string;
  range?: ByteRange;
}

/** Returns the pieces to read, in order, for a file or a range of it. */
export function piecesOf(file: UploadFileRow, splitting: Splitting, range?: ByteRange): Piece[] {
  const { content_length } = file;
  const joined_key = joinedKeyOf(file);
  if (joined_key !== undefined) return [{ key: joined_key, ...(range && { range }) }];
  const { start: first, end: last } = range ?? { start: 0, end: content_length };
  return partObjectsOf(file, splitting).flatMap(({ part, key }) => {
    const start = Math.max(first - part.byte_offset, 0);
    const end = Math.min(last - part.byte_offset, part.content_length - 1);
    if (key === undefined || (start > end && content_length > 0)) return [];
    return start === 0 && end === part.content_length - 1 ? [{ key }] : [{ key, range: { start, end } }];
  });
}
