import type { Answer, Api } from './api.ts';
import type { TestGame } from './game.ts';

/** The request that uploads one part of a file, as in the answer. */
export interface PartRequest {
  path: string;
  url: string;
  byte_offset: number;
  content_length: number;
}

/** A prepared upload. */
export interface PreparedUpload {
  upload_id: string;
  requests: PartRequest[];
}

interface PrepareOptions {
  path?: string;
  content_length?: number;
  multipart_upload?: boolean;
  part_length?: number;
}

/** Prepares a javascript build of a game with one file. */
export async function prepareScript(
  { api }: { api: Api },
  { game_id, cloud_token: token }: TestGame,
  { path = 'server.js', content_length = 1, multipart_upload = false, part_length }: PrepareOptions = {},
): Promise<PreparedUpload & { build_id: string }> {
  const image_file = { path, content_length };
  const body = { display_name: 'Test build', kind: 'javascript', image_file, multipart_upload, part_length };
  const answer = await api.ok('POST', `/cloud/games/${game_id}/builds`, { token, body });
  const { build_id, upload_id, image_presigned_request, image_presigned_requests } = answer;
  return { build_id, upload_id, requests: image_presigned_requests ?? [image_presigned_request] };
}

/** Sends one part. Returns the status and code of the answer: "200 accepted" for a success. */
export async function sendPart({ url }: PartRequest, content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const response = await fetch(url, { method: 'PUT', body: content });
  const { code = 'accepted' } = await response.json();
  return `${response.status} ${code}`;
}

/** Completes an upload. */
export async function completeUpload(
  { api }: { api: Api },
  { upload_id }: Pick<PreparedUpload, 'upload_id'>,
  token: string,
): Promise<Answer> {
  return await api.post(`/cloud/uploads/${upload_id}/complete`, token);
}

/** Completes an upload. Returns the status and code of the answer: "200 complete" for a success. */
export async function completion(...call: Parameters<typeof completeUpload>): Promise<string> {
  const { status, body } = await completeUpload(...call);
  return `${status} ${body.code ?? 'complete'}`;
}
