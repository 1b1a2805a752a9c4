import { ServiceError } from '../../platform/errors.ts';
import { errorResponse } from '../../platform/http/answers.ts';
import { route } from '../../platform/http/route.ts';
import type { Identities } from './identities.ts';
import { REFRESH_LIFETIME_MS, type Session } from './sessions.ts';
import { RefreshAnswer, RefreshBody } from './wire.ts';

/** The cookie's name in the reference API, so that its clients stay logged in. */
const COOKIE = 'rivet_user_refresh_token';
/** The path that gets the cookie. Game servers at other ports of the host get it at this path only. */
const PATH = '/auth/tokens/identity';

/** The route that reads the cookie with a refresh token. Only pages of the service's own origins may call it. */
export function sessionRoutes(
  identities: Pick<Identities, 'sessions' | 'createGuest'>,
  { public_url }: { public_url: string },
) {
  const is_https = public_url.startsWith('https:');

  function cookieOf(value: string, maxAge: number, path = PATH): string {
    const sameSite = is_https ? ('none' as const) : ('lax' as const);
    return new Bun.Cookie(COOKIE, value, { maxAge, httpOnly: true, path, secure: is_https, sameSite }).toString();
  }
  /** Returns the headers that set the cookie. They remove one of all paths, which game servers at this host would get. */
  function headersOf(value: string, maxAge: number): Headers {
    const headers = new Headers();
    for (const cookie of [cookieOf(value, maxAge), cookieOf('', 0, '/')]) headers.append('set-cookie', cookie);
    return headers;
  }

  return [
    route(
      'POST',
      PATH,
      {
        operation: 'refreshIdentityToken',
        summary:
          'Returns a token for the identity of the cookie. Creates a guest after a logout, or if the cookie is missing, unreadable or expired.',
        allow: 'anyone',
        body: RefreshBody,
        response: RefreshAnswer,
        errors: ['API_MISSING_HEADER', 'TOKEN_REFRESH_NOT_FOUND', 'TOKEN_REVOKED'],
      },
      async ({ request, body, ray_id }) => {
        // CORS refuses foreign origins earlier. A request without an origin does not come from a page.
        if (!request.headers.has('origin')) throw new ServiceError('API_MISSING_HEADER', { header: 'Origin' });
        const cookie = new Bun.CookieMap(request.headers.get('cookie') ?? '').get(COOKIE);
        if (cookie && body.logout) await identities.sessions.end(cookie);
        let next: Session | undefined;
        try {
          if (cookie && !body.logout) next = await identities.sessions.refresh(cookie);
        } catch (error) {
          if (!(error instanceof ServiceError) || error.status >= 500) throw error;
          // Deletes the cookie of a refused token, which would be refused until it expires.
          const refusal = errorResponse(error, { ray_id, public_url });
          for (const [name, value] of headersOf('', 0)) refusal.headers.append(name, value);
          return refusal;
        }
        const session = next ?? (await identities.sessions.open((await identities.createGuest()).identity_id));
        const { identity_id, token, expire_ts, refresh_token } = session;
        return Response.json(
          { token, exp: expire_ts.toISOString(), identity_id },
          { headers: headersOf(refresh_token, REFRESH_LIFETIME_MS / 1_000) },
        );
      },
    ),
  ];
}
