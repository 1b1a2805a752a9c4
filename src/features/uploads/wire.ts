import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, U64, Uuid } from '../../platform/http/shapes.ts';
import { UPLOAD_KINDS, type UploadRow } from './tables.ts';

/** A file to upload. */
export const PrepareFile = Type.Object(
  {
    path: Type.String({ minLength: 1, maxLength: 1_024, description: 'Name of the file.' }),
    content_type: Type.Optional(Type.String({ maxLength: 255, description: 'Printable ASCII characters.' })),
    content_length: U64,
  },
  { title: 'PrepareFile' },
);
export type PrepareFile = Static<typeof PrepareFile>;

/** A request that uploads a file, or a part of it: PUT the bytes to `url`. */
export const PresignedRequest = Type.Object(
  {
    path: Type.String(),
    url: Type.String(),
    byte_offset: U64,
    content_length: U64,
  },
  { title: 'PresignedRequest' },
);
export type PresignedRequest = Static<typeof PresignedRequest>;

const Upload = Type.Object(
  {
    upload_id: Uuid,
    kind: oneOf('UploadKind', UPLOAD_KINDS),
    create_ts: Timestamp,
    content_length: Type.Integer({ minimum: 0, description: 'Bytes of all files together.' }),
    received_length: Type.Integer({
      minimum: 0,
      description: 'Bytes of the parts that have arrived, and of the files that need not be sent.',
    }),
    complete: Type.Boolean(),
  },
  { title: 'Upload' },
);
export type UploadView = Static<typeof Upload>;
export const MissingRequestsAnswer = Type.Object({
  presigned_requests: Type.Array(PresignedRequest, { description: 'Empty if all parts have arrived.' }),
});
export const UploadAnswer = Type.Object({ upload: Upload });

export function toUpload(
  { upload_id, kind, create_ts, content_length, complete_ts }: UploadRow,
  received_length: number,
): UploadView {
  return {
    upload_id,
    kind,
    create_ts: create_ts.toISOString(),
    content_length,
    received_length,
    complete: complete_ts !== null,
  };
}
