import type { Api } from './api.ts';
import { makeGame, type TestGame } from './game.ts';
import { PROXY_SECRET } from './proxy-secret.ts';
import type { TestService } from './service.ts';
import { type SiteFiles, showSite, uploadSite } from './site.ts';

/** A game whose namespace prod has a site. */
export interface ShownSite extends TestGame {
  host: string;
  /** The path of its namespace prod in the API. */
  namespace: string;
  /** Requests a file as a browser whose address a trusted proxy sends. */
  visit(path: string, options?: { address?: string; headers?: Record<string, string> }): Promise<Response>;
}

/** Makes a game that shows a site. The service must trust 127.0.0.1 as a proxy for addresses to count. */
export async function makeShownSite(
  { api, administrator_token }: Pick<TestService, 'administrator_token'> & { api: Api },
  files: SiteFiles = { 'index.html': 'hello' },
): Promise<ShownSite> {
  const game = await makeGame(api, administrator_token);
  const { game: seen } = await api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const host = `${seen.name_id}.sites.localhost`;
  await showSite(api, game, { site_id: await uploadSite(api, game, files) });
  return {
    ...game,
    host,
    namespace: `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`,
    visit: (path, { address = '203.0.113.1', headers = {} } = {}) =>
      fetch(`${api.base_url}${path}`, {
        headers: { host, 'x-forwarded-for': address, 'muster-proxy-secret': PROXY_SECRET, ...headers },
        decompress: false,
      }),
  };
}

/** Lets only users with a password see a site; all have the password `right`. */
export async function protectSite(api: Api, site: ShownSite, users: string[], cost: number): Promise<void> {
  const password = await Bun.password.hash('right', { algorithm: 'bcrypt', cost });
  const token = site.cloud_token;
  for (const user of users) await api.ok('POST', `${site.namespace}/auth-user`, { token, body: { user, password } });
  await api.ok('PUT', `${site.namespace}/cdn-auth`, { token, body: { auth_type: 'basic' } });
}

/** The header of a user with a password. */
export const credentials = (user: string, password: string) => ({
  headers: { authorization: `Basic ${btoa(`${user}:${password}`)}` },
});
