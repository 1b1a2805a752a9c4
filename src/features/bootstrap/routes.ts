import { findAsset } from '../../platform/assets.ts';
import { ServiceError } from '../../platform/errors.ts';
import { route } from '../../platform/http/route.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Demo } from './demo.ts';

/** Its own script and style, and sockets to wherever lobbies run; nothing else. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self' ws: wss:; base-uri 'none'";

/** The page on which two players meet. */
export function demoRoutes(namespaces: Namespaces, findDemo: () => Demo | undefined) {
  return [
    route(
      'GET',
      '/demo',
      { summary: 'The demo room.', allow: 'anyone', is_page: true, errors: ['API_NOT_FOUND'] },
      async () => {
        const demo = findDemo();
        if (!demo) throw new ServiceError('API_NOT_FOUND', {});
        const page = await Bun.file(findAsset('examples/room.html')).text();
        const token = await namespaces.createPublicToken(demo);
        return new Response(page.replace('{{public_token}}', token), {
          headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY },
        });
      },
    ),
  ];
}
