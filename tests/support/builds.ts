import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer, Api } from './api.ts';
import type { TestGame } from './game.ts';

/** The body that prepares a javascript build of one byte. */
export const SCRIPT = { name: 'Build', kind: 'javascript', image_file: { path: 'server.js', content_length: 1 } };

/** Returns the builds of an environment, by default prod, as the caller of a token sees them. */
export function buildsOf(
  { api }: { api: Api },
  { game_id, namespace_id, cloud_token }: TestGame,
  { environment_id = namespace_id, token = cloud_token } = {},
) {
  const path = `/games/${game_id}/environments/${environment_id}/builds`;
  const list = (tags_json?: string): Promise<Answer> =>
    api.get(tags_json === undefined ? path : `${path}?tags_json=${encodeURIComponent(tags_json)}`, token);
  return {
    path,
    list,
    /** Returns the ids of the builds that have all of the tags, newest first. */
    async idsWith(tags: Record<string, string>): Promise<string[]> {
      const { builds } = (await list(JSON.stringify(tags))).body;
      return builds.map(({ id }: { id: string }) => id);
    },
    get: (build_id: string): Promise<Answer> => api.get(`${path}/${build_id}`, token),
    prepare: (body: object): Promise<Answer> => api.post(`${path}/prepare`, token, body),
    complete: (build_id: string): Promise<Answer> => api.post(`${path}/${build_id}/complete`, token),
    setTags: (build_id: string, body: object): Promise<Answer> =>
      api.call('PATCH', `${path}/${build_id}/tags`, { token, body }),
    /** Prepares a build, and returns its id. */
    async make(body: object = SCRIPT): Promise<string> {
      return (await api.ok('POST', `${path}/prepare`, { token, body })).build;
    },
  };
}

/** Prepares and sends an archive as a build of prod, without completing it. */
export async function sendArchive(
  muster: { api: Api },
  game: TestGame,
  content: Uint8Array<ArrayBuffer>,
  command = ['./server'],
) {
  const builds = buildsOf(muster, game);
  const image_file = { path: 'server.tar', content_length: content.length };
  const body = { name: 'Build', kind: 'archive', command, image_file };
  const { build, image_presigned_request } = await muster.api.ok('POST', `${builds.path}/prepare`, {
    token: game.cloud_token,
    body,
  });
  const send = async (bytes: Uint8Array<ArrayBuffer>) => {
    const response = await fetch(image_presigned_request.url, { method: 'PUT', body: bytes });
    if (!response.ok) throw new Error(`the archive is refused: ${await response.text()}`);
  };
  await send(content);
  return {
    build_id: String(build),
    /** Sends another content of the same length to the same address. */
    send,
    complete: () => builds.complete(build),
  };
}

/** Returns the directory of a build's unpacked files on a machine. */
export function directoryOfBuild({ config }: { config: { data_directory: string } }, build_id: string): string {
  const folder = join(config.data_directory, 'builds', build_id);
  const [content, ...others] = existsSync(folder) ? readdirSync(folder) : [];
  if (others.length > 0) throw new Error(`${folder} holds more than one content`);
  return join(folder, content ?? '');
}
