import { createHash } from 'node:crypto';
import { assert, ServiceError } from '../../platform/errors.ts';
import { readBearer } from '../../platform/http/authentication.ts';
import { route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { inEachMinute } from '../../platform/limits/limit.ts';
import type { Hub } from './hub.ts';
import { HubLink, HubToken, LogInBody } from './wire.ts';

/** The paths that get the cookie. Game servers at other ports of the host get it at these paths only. */
const PATH = '/hub/session';

/**
 * Pages log in and renew their tokens without a caller, so this counts all browsers behind one address. Secrets are too long
 * to be guessed. The window is short, so that pages that retried during a database outage soon get through again.
 */
const SESSIONS = inEachMinute('hub-sessions', 600);

/** The most cookies of earlier releases whose sessions a request ends. A browser has one. */
const EARLIER_COOKIES_MAX = 4;

/**
 * Routes for the session of a browser. Those that read or set its cookie answer only pages of the service's own origins:
 * CORS refuses foreign origins, and a request without an origin does not come from a page.
 */
export function sessionRoutes(hub: Hub, { public_url }: { public_url: string }) {
  // Browsers send cookies to all ports of a host, and a developer's machine may run several services.
  const port = new URL(public_url).port || 'default';
  const name = `muster_session_${port}`;
  /**
   * A cookie with the hash of the session's secret, over https. A page below the same parent domain can set a cookie of any
   * other name for this host, and so log its visitor in as someone else. Browsers let only this host set one with this
   * prefix, but want the path "/", so game servers at other ports of the host may get it; its value opens no session.
   */
  const seal_name = `__Host-muster_session_${port}`;
  /** The cookie of earlier releases. Its path was "/", so game servers at this host got it. */
  const cookie_name_of_earlier_releases = `muster_hub_${port}`;

  /** Returns the headers that set or, with the age 0, remove the cookies of a session. */
  function cookiesOf(request: Request, secret: string, maxAge: number): Headers {
    const headers = new Headers();
    const secure = isHttps(request);
    const options = { maxAge, httpOnly: true, secure, sameSite: 'strict' } as const;
    headers.append('set-cookie', new Bun.Cookie(name, secret, { ...options, path: PATH }).toString());
    if (!secure) return headers;
    const seal = secret === '' ? '' : sealOf(secret);
    headers.append('set-cookie', new Bun.Cookie(seal_name, seal, { ...options, path: '/' }).toString());
    return headers;
  }

  /**
   * Returns the secret of the browser's session: over https, the one whose seal the browser has. Over http, nothing says
   * which of several cookies is the hub's, so then the request has no session. No cookie is removed, because the browser
   * could lose the hub's own and go on with the other.
   */
  function readSecret(request: Request): string | undefined {
    const secrets = readCookies(request, name);
    if (!isHttps(request)) return secrets.length === 1 ? secrets[0] : undefined;
    const seals = readCookies(request, seal_name);
    return secrets.find((secret) => seals.includes(sealOf(secret)));
  }

  /**
   * Ends the session of a cookie of an earlier release, which browsers also sent to game servers at this host. Returns the
   * headers that remove the cookie.
   */
  async function endSessionOfEarlierRelease(request: Request): Promise<Record<string, string>> {
    const secrets = readCookies(request, cookie_name_of_earlier_releases);
    if (secrets.length === 0) return {};
    for (const secret of secrets.slice(0, EARLIER_COOKIES_MAX)) await hub.logOut(secret);
    return { 'set-cookie': new Bun.Cookie(cookie_name_of_earlier_releases, '', { maxAge: 0, path: '/' }).toString() };
  }

  return [
    route(
      'POST',
      '/hub/links',
      {
        operation: 'createHubLink',
        summary: "Creates a link that opens the hub, logged in as the token's bearer. It works once, within an hour.",
        allow: ['identity', 'cloud'],
        body: Empty,
        response: HubLink,
        errors: ['GAME_NOT_FOUND', 'IDENTITY_NOT_FOUND'],
      },
      async ({ request }) => {
        const token = readBearer(request.headers);
        assert(token !== undefined, 'an authenticated caller has sent a token');
        return await hub.createLink(token);
      },
    ),
    route(
      'POST',
      '/hub/session',
      {
        operation: 'createHubSession',
        summary:
          'Logs a browser in with the code of a link: sets the cookie of its session, and ends the session that it had. For pages of the hub.',
        allow: 'anyone',
        limit: SESSIONS,
        body: LogInBody,
        response: Empty,
        errors: ['API_MISSING_HEADER', 'HUB_LINK_INVALID', 'HUB_OTHER_SESSION'],
      },
      async ({ request, body: { code, replaces_session = false } }) => {
        requireOrigin(request);
        const replaced_secret = readSecret(request);
        const { secret, lifetime_ms } = await hub.logIn(code, { replaced_secret, replaces_session });
        return Response.json({}, { headers: cookiesOf(request, secret, Math.floor(lifetime_ms / 1_000)) });
      },
    ),
    route(
      'POST',
      '/hub/session/token',
      {
        operation: 'createHubToken',
        summary:
          "Returns a token for the bearer of the session in the browser's cookie, or nothing without a cookie. For pages of the hub.",
        allow: 'anyone',
        limit: SESSIONS,
        body: Empty,
        response: HubToken,
        errors: ['API_MISSING_HEADER', 'HUB_NOT_LOGGED_IN'],
      },
      async ({ request }) => {
        const headers = await endSessionOfEarlierRelease(request);
        const secret = readSecret(request);
        // Not a refusal: browsers would report one as an error of the page.
        return Response.json(secret === undefined ? {} : await hub.issueToken(secret), { headers });
      },
    ),
    route(
      'DELETE',
      '/hub/session',
      {
        operation: 'revokeHubSession',
        summary: "Ends the session in the browser's cookie, and removes the cookie. For pages of the hub.",
        allow: 'anyone',
        response: Empty,
        errors: ['API_MISSING_HEADER'],
      },
      async ({ request }) => {
        const secret = readSecret(request);
        if (secret !== undefined) await hub.logOut(secret);
        return Response.json({}, { headers: cookiesOf(request, '', 0) });
      },
    ),
  ];
}

/** Returns the origin of the page that sent a request. Throws API_MISSING_HEADER if no page has sent it. */
function requireOrigin({ headers }: Request): string {
  const origin = headers.get('origin');
  if (origin === null) throw new ServiceError('API_MISSING_HEADER', { header: 'Origin' });
  return origin;
}

/** Returns whether a page has https. A service on one's own machine may answer both http and https. */
function isHttps(request: Request): boolean {
  return requireOrigin(request).startsWith('https:');
}

/** Returns the values of all cookies with a name, for pages only. Throws API_MISSING_HEADER. */
function readCookies(request: Request, name: string): string[] {
  requireOrigin(request);
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

function sealOf(secret: string): string {
  return createHash('sha256').update(`seal of ${secret}`).digest('base64url');
}
