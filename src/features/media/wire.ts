import { type Static, Type } from '@sinclair/typebox';
import { Timestamp, U64, Uuid } from '../../platform/http/shapes.ts';
import type { UploadRow } from '../uploads/uploads.ts';
import { PresignedRequest } from '../uploads/wire.ts';

export const PreparePictureBody = Type.Object({
  path: Type.String({ minLength: 1, maxLength: 1_024, description: 'Name of the file: .png, .jpg or .jpeg.' }),
  mime: Type.Optional(Type.String({ maxLength: 255, description: 'Ignored: the type is inferred from the name.' })),
  content_length: U64,
});
export const PreparePictureAnswer = Type.Object({ upload_id: Uuid, presigned_request: PresignedRequest });

const CustomAvatar = Type.Object(
  {
    upload_id: Uuid,
    display_name: Type.String(),
    create_ts: Timestamp,
    url: Type.Optional(Type.String()),
    content_length: U64,
    complete: Type.Boolean(),
  },
  { title: 'CustomAvatar' },
);
export const CustomAvatarsAnswer = Type.Object({ custom_avatars: Type.Array(CustomAvatar) });

export function toCustomAvatar(
  { upload, path }: { upload: UploadRow; path: string },
  public_url: string,
): Static<typeof CustomAvatar> {
  const { upload_id, create_ts, content_length, complete_ts } = upload;
  return {
    upload_id,
    display_name: path,
    create_ts: create_ts.toISOString(),
    ...(complete_ts ? { url: `${public_url}/media/custom-avatar/${upload_id}` } : {}),
    content_length,
    complete: complete_ts !== null,
  };
}
