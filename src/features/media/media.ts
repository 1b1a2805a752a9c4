import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Identities } from '../identities/identities.ts';
import type { QuotaLimits, UploadRow, Uploads } from '../uploads/uploads.ts';
import type { PresignedRequest } from '../uploads/wire.ts';
import {
  BYTES_MAX,
  hasSignatureOf,
  imageTypeOf,
  PICTURE_KINDS,
  type PictureKind,
  SIGNATURE_BYTES_MAX,
} from './rules.ts';

export type { PictureKind } from './rules.ts';

/** The owner of a picture: a game, or the identity that uploads it for itself or its group. */
export type PictureOwner = { game_id: string } | { identity_id: string };

interface MediaSettings {
  /** Limits for the pictures of a game, of a namespace's players, or of an identity. */
  picture_quota: QuotaLimits;
}

export interface MediaDependencies extends MediaSettings {
  database: Database;
  uploads: Uploads;
  identities: Identities;
}

/** Shows a picture in place of the current one, and returns the upload id of the replaced one. */
export type ShowPicture = (tx: Tx) => Promise<string | null>;

export type Media = ReturnType<typeof createMedia>;

/** Creates the use cases of pictures of games, groups and people: PNG or JPEG, checked before they are shown. */
export function createMedia({ database, uploads, identities, picture_quota }: MediaDependencies) {
  for (const kind of PICTURE_KINDS) {
    uploads.setPurpose(kind, {
      async inspect(upload_id) {
        const [file] = await uploads.files(upload_id);
        const type = imageTypeOf(file?.path ?? '');
        if (type && hasSignatureOf(type, await readStart(await uploads.read(upload_id, 0)))) return;
        const error = 'its content does not match the file type in its name; rename the file, or convert it';
        throw new ServiceError('UPLOAD_INVALID', { error });
      },
      async complete() {},
    });
  }

  /** Returns the scope of a picture's quota. Guests cost nothing to create, so those of a namespace share a quota. */
  async function scopeOf(owner: PictureOwner): Promise<string> {
    if ('game_id' in owner) return `game:${owner.game_id}`;
    const { identity_id, namespace_id, is_registered } = await identities.get(owner.identity_id);
    if (is_registered) return `identity:${identity_id}`;
    return namespace_id === null ? 'guests' : `namespace:${namespace_id}`;
  }

  return {
    /**
     * Prepares the upload of a picture. Throws UPLOAD_INVALID unless it is a PNG or JPEG, UPLOAD_TOO_LARGE or
     * UPLOAD_QUOTA_REACHED.
     */
    async prepare(
      kind: PictureKind,
      owner: PictureOwner,
      { path, content_length }: { path: string; content_length: number },
    ): Promise<{ upload_id: string; presigned_request: PresignedRequest }> {
      const content_type = imageTypeOf(path);
      if (!content_type)
        throw new ServiceError('UPLOAD_INVALID', {
          error: 'the file name of a picture must end in .png, .jpg or .jpeg',
        });
      const max_content_length = BYTES_MAX[kind];
      if (content_length > max_content_length) throw new ServiceError('UPLOAD_TOO_LARGE', { max_content_length });
      const upload = { kind, is_multipart: false, ...owner };
      const quota = { scope: await scopeOf(owner), limits: picture_quota };
      const { upload_id, unsent } = await database.transact((tx) =>
        uploads.prepare(tx, upload, [{ path, content_type, content_length }], quota),
      );
      const [presigned_request] = await uploads.presign(unsent);
      assert(presigned_request, 'the only file of a picture has a request');
      return { upload_id, presigned_request };
    },
    /**
     * Completes a picture and shows it at once; discards the replaced one. Throws UPLOAD_NOT_FOUND if it belongs to
     * another owner, or another error of uploads.
     */
    async complete(kind: PictureKind, owner: PictureOwner, upload_id: string, show?: ShowPicture): Promise<void> {
      const upload = await uploads.get(upload_id);
      if (upload.kind !== kind || !isOwnedBy(upload, owner)) throw new ServiceError('UPLOAD_NOT_FOUND', {});
      const replace = async (tx: Tx) => {
        const replaced = await show?.(tx);
        if (replaced) await uploads.discard(tx, replaced);
      };
      if ((await uploads.complete(upload_id, replace)) || !show) return;
      // It was completed before. Repeating that is harmless while the picture is still shown; otherwise the error undoes
      // what `show` did.
      await database.transact(async (tx) => {
        if ((await show(tx)) === upload_id) return;
        const error = 'it was completed before and is not shown here; prepare another upload';
        throw new ServiceError('UPLOAD_INVALID', { error });
      });
    },
    /** Returns the pictures that a game offers its players, newest first. */
    customAvatars: (game_id: string) => uploads.listOf(game_id, 'custom_avatar'),
    /** Returns a complete picture. Throws UPLOAD_NOT_FOUND. */
    async read(kind: PictureKind, upload_id: string): Promise<{ content: ReadableStream<Uint8Array>; type: string }> {
      const upload = await uploads.get(upload_id);
      const [file] = await uploads.files(upload_id);
      const type = imageTypeOf(file?.path ?? '');
      if (upload.kind !== kind || !upload.complete_ts || !type) throw new ServiceError('UPLOAD_NOT_FOUND', {});
      return { content: await uploads.read(upload_id, 0), type };
    },
  };
}

function isOwnedBy(upload: UploadRow, owner: PictureOwner): boolean {
  return 'game_id' in owner ? upload.game_id === owner.game_id : upload.identity_id === owner.identity_id;
}

/** Reads the first bytes of a file, as many as the longest signature has; all bytes of a shorter file. */
async function readStart(content: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  let start = Buffer.alloc(0);
  for await (const chunk of content) {
    start = Buffer.concat([start, chunk]);
    if (start.length >= SIGNATURE_BYTES_MAX) break;
  }
  return start;
}
