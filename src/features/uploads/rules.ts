import type { UploadPart } from '../../platform/objects/presign.ts';

/** The field's (field-behaviour 8.7). */
export const PART_BYTES = 100 * 1024 ** 2;
export const PARTS_MAX = 10_000;
/** In UTF-8, as object storages count. */
export const PATH_BYTES_MAX = 1_024;

/** The parts in which a file arrives: chunks of 100 MiB, or the whole. An empty file is one empty part. */
export function partsOf(
  file: { upload_id: string; file_number: number; path: string; content_length: number },
  is_multipart: boolean,
): UploadPart[] {
  const { upload_id, file_number, path, content_length } = file;
  const part_bytes = is_multipart ? PART_BYTES : Math.max(content_length, 1);
  const count = Math.max(1, Math.ceil(content_length / part_bytes));
  return Array.from({ length: count }, (_, part_number) => {
    const byte_offset = part_number * part_bytes;
    const length = Math.min(part_bytes, content_length - byte_offset);
    return { upload_id, file_number, part_number, path, byte_offset, content_length: length };
  });
}

/** Where a part lies until the upload is complete. */
export function partKey({ upload_id, file_number, part_number }: UploadPart): string {
  return `${upload_id}/${file_number}.${part_number}.part`;
}

/** Where a file of a complete upload lies. */
export function fileKey(upload_id: string, file_number: number): string {
  return `${upload_id}/${file_number}`;
}
