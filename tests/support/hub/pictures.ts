import type { Answer, Api } from '../api.ts';

/** A picture of one pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** The paths that prepare and complete a picture; the latter contains `:upload_id`. */
export interface PicturePaths {
  prepare: string;
  complete: string;
}

const MINE = '/identity/identities/avatar-upload';

/** The paths of a person's own picture. */
export const OWN_PICTURE: PicturePaths = { prepare: `${MINE}/prepare`, complete: `${MINE}/:upload_id/complete` };

/** The paths of a group's picture. */
export const groupPicture = (group_id: string): PicturePaths => ({
  prepare: '/group/groups/avatar-upload/prepare',
  complete: `/group/groups/${group_id}/avatar-upload/:upload_id/complete`,
});

/** The paths of a game's `logo`, `banner` or `avatar`. */
export const gamePicture = (game_id: string, kind: string): PicturePaths => ({
  prepare: `/cloud/games/${game_id}/${kind}-upload/prepare`,
  complete: `/cloud/games/${game_id}/${kind}-upload/:upload_id/complete`,
});

/** Prepares, sends and completes a picture. Returns the upload's id and the last answer. */
export async function uploadPicture(
  api: Api,
  token: string,
  paths: PicturePaths,
  { name = 'me.png', content = PNG }: { name?: string; content?: Buffer<ArrayBuffer> } = {},
): Promise<{ upload_id: string; complete: string; answer: Answer }> {
  const body = { path: name, content_length: content.length };
  const { upload_id, presigned_request } = await api.ok('POST', paths.prepare, { token, body });
  const sent = await fetch(presigned_request.url, { method: 'PUT', body: content });
  if (!sent.ok) throw new Error(`PUT ${name}: ${await sent.text()}`);
  const complete = paths.complete.replace(':upload_id', upload_id);
  return { upload_id, complete, answer: await api.post(complete, token) };
}
