import type { Api } from './api.ts';
import type { TestGame } from './game.ts';

export type SiteFiles = Record<string, Uint8Array | string>;

/** Uploads a site (prepare, PUT each file, complete), and returns its id. */
export async function uploadSite(
  api: Api,
  { game_id, cloud_token: token }: TestGame,
  files: SiteFiles,
): Promise<string> {
  const bytes = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)]));
  const body = {
    display_name: 'Test site',
    files: [...bytes].map(([path, { length }]) => ({ path, content_length: length })),
  };
  const { site_id, upload_id, presigned_requests } = await api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, {
    token,
    body,
  });
  for (const { path, url } of presigned_requests) {
    const response = await fetch(url, { method: 'PUT', body: bytes.get(path) ?? '' });
    if (!response.ok) throw new Error(`PUT ${path}: ${await response.text()}`);
  }
  await api.ok('POST', `/cloud/uploads/${upload_id}/complete`, { token });
  return site_id;
}

/** Puts the namespace prod on a new version that shows a site. */
export async function showSite(api: Api, game: TestGame, cdn: object): Promise<void> {
  const { game_id, namespace_id, cloud_token: token } = game;
  const body = { display_name: `Site ${crypto.randomUUID()}`, config: { cdn } };
  const { version_id } = await api.ok('POST', `/cloud/games/${game_id}/versions`, { token, body });
  await api.ok('PUT', `/cloud/games/${game_id}/namespaces/${namespace_id}/version`, { token, body: { version_id } });
}
