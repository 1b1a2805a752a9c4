import { signal } from '@preact/signals';
import { type Client, connect } from '../../client/client.ts';
import { showOutcome } from './actions.ts';
import { isFailureOfService, Refused, request, untilAnswered } from './request.ts';

/** A token is renewed this long before it expires: enough for the difference of clocks and the time of a request. */
const RENEW_BEFORE_MS = 60_000;
/** Shorter than for players' clients: few pages of the hub are open, so they do not overload a service that is back. */
const RETRY_MAX_MS = 4_000;
/**
 * How long a failed request for a token answers further requests too. Each path that a page watches asks for a token in its
 * own retries, and all pages behind one address share a limit.
 */
const FAILURE_STANDS_MS = 1_500;
/** A token costs the service one read, and everything else waits for it. */
const TOKEN_WITHIN_MS = 20_000;
const LOG_IN = '#login=';
const SHARE = '#share=';

/** What the page knows of its session. */
type SessionState =
  | { is: 'unknown' }
  | { is: 'in' }
  | { is: 'shared'; token: string }
  /** A link logs in someone other than the bearer of this browser's session. */
  | { is: 'asked'; answer(replaces_session: boolean): void }
  /** The service refuses pages of this address. */
  | { is: 'elsewhere' }
  | { is: 'out'; reason?: string };

export const state = signal<SessionState>({ is: 'unknown' });
/** Whether changes are pushed to the page now. */
export const is_connected = signal(false);

interface Token {
  token: string;
  expires_at: number;
}

/** Tells the other tabs of the browser that its session has begun or ended. */
const tabs = new BroadcastChannel('muster-session');
const ENDED = 'Your session has ended. Log in again to go on.';

/** Says for whom a token acts. */
const INSPECT = '/cloud/auth/inspect';

/** Aborted when the session is started again. */
let starting = new AbortController();
let started: Promise<void> = Promise.resolve();
/** The latest token. */
let token: Promise<Token> | undefined;
/** The request for a token that further callers share: it is under way, or has just failed. */
let requested: Promise<Token> | undefined;
/** The token of the share link that led here. */
let shared: string | undefined;
let client: Client | undefined;
let is_reviewing = false;

/**
 * Logs in by the link that led here, if one did, and otherwise continues the browser's session. If it has none, the page
 * shows the reason, if one is given.
 */
export function startSession(reason?: string): Promise<void> {
  starting.abort();
  starting = new AbortController();
  started = start(starting.signal, reason);
  return started;
}

async function start(until: AbortSignal, reason: string | undefined): Promise<void> {
  // A share link opens its own page, even in a browser with a session.
  if (location.hash.startsWith(SHARE)) {
    shared = location.hash.slice(SHARE.length);
    forget({ is: 'shared', token: shared });
    return;
  }
  shared = undefined;
  forget({ is: 'unknown' });
  const refused = await logInByLink(until).then(
    () => undefined,
    (error: unknown) => error,
  );
  try {
    // A link that was used before is no reason to end the session that it created.
    await untilAnswered(newToken, { until, repeats: isFailureOfService });
    if (until.aborted) return;
    state.value = { is: 'in' };
    if (refused instanceof Error) showOutcome({ error: refused });
  } catch (caught) {
    if (until.aborted) return;
    const error = refused ?? caught;
    state.value = stateAfter(error, reason);
  }
}

/** Returns the state of a page that could not be logged in. */
function stateAfter(error: unknown, reason: string | undefined): SessionState {
  const code = error instanceof Refused ? error.code : undefined;
  if (code === 'API_CORS_ORIGIN_NOT_ALLOWED') return { is: 'elsewhere' };
  // A browser that has no session yet gets no reason, because nothing has failed.
  const shown = code === 'HUB_NOT_LOGGED_IN' || !(error instanceof Error) ? reason : error.message;
  return { is: 'out', ...(shown !== undefined && { reason: shown }) };
}

// A link that is pasted over the address of an open page changes only what follows the #, so nothing is loaded.
addEventListener('hashchange', () => {
  const has_link = location.hash.startsWith(LOG_IN) || location.hash.startsWith(SHARE);
  if (has_link || shared !== undefined) void startSession();
});

tabs.addEventListener('message', async ({ data }: MessageEvent<'in' | 'out'>) => {
  // A page that starts may have asked for its token before the other tab logged in. A start after that has the new one.
  await started;
  const { is } = state.value;
  if (is !== 'in' && is !== 'out') return;
  if (is === data && (is === 'out' || (await isSameBearer()))) return;
  await startSession(data === 'out' ? ENDED : undefined);
});

/** Returns whether the browser's session acts for the same bearer as this page. */
async function isSameBearer(): Promise<boolean> {
  const tokens = await Promise.all([token, requestToken()]).catch(() => []);
  const bearers = tokens.map(async (one) => one && (await request<object>('GET', INSPECT, { bearer: one.token })));
  const [own, other] = (await Promise.all(bearers).catch(() => [])).map((one) => JSON.stringify(one));
  return own !== undefined && own === other;
}

/** Logs in with a token, as with a link. */
export async function logInWith(bearer: string): Promise<void> {
  const { url } = await request<{ url: string }>('POST', '/hub/links', { bearer, body: {} });
  await logInBy(new URL(url).hash.slice(LOG_IN.length), { replaces_session: true });
  await startSession();
}

export async function logOut(): Promise<void> {
  await request('DELETE', '/hub/session');
  forget({ is: 'out' });
  tabs.postMessage('out');
}

/** Returns the client that watches everything for this page, over one socket. */
export function watcher(): Client {
  client ??= connect({
    url: location.origin,
    token: tokenForClient(),
    onConnection: (has_connection) => {
      is_connected.value = has_connection;
    },
    timing: { retry_max_ms: RETRY_MAX_MS },
  });
  return client;
}

/** Returns a function that returns the page's token first, and then a new one at each call: the service refused the others. */
function tokenForClient(): () => Promise<string> {
  let next = currentToken;
  return async () => {
    if (shared !== undefined) return shared;
    const { token } = await next();
    next = newToken;
    return token;
  };
}

/** Sends a request of the API as the bearer of the session. Throws Refused or Unreachable. */
export async function callApi<Answer>(
  method: string,
  path: string,
  options: { body?: unknown; until?: AbortSignal | undefined } = {},
): Promise<Answer> {
  const { token: bearer } = await currentToken();
  try {
    return await request<Answer>(method, path, { bearer, ...options });
  } catch (error) {
    if (error instanceof Refused) reviewSession(error);
    throw error;
  }
}

/** Sends a request of the API as the bearer of another token, for example as a player. Throws Refused or Unreachable. */
export async function callApiAs<Answer>(bearer: string, method: string, path: string, body?: unknown): Promise<Answer> {
  return await request<Answer>(method, path, { bearer, body });
}

/** After a refusal because the token was revoked, gets a new one. Ends the session of the page if there is none. */
export function reviewSession({ code }: { code: string }): void {
  // If several requests are refused at once, the session is checked once.
  if (is_reviewing || code !== 'TOKEN_REVOKED' || state.value.is !== 'in') return;
  is_reviewing = true;
  newToken()
    .catch(() => undefined)
    .finally(() => {
      is_reviewing = false;
    });
}

async function logInByLink(until: AbortSignal): Promise<void> {
  const { hash } = location;
  if (!hash.startsWith(LOG_IN)) return;
  const code = hash.slice(LOG_IN.length);
  const logInUntilAnswered = (replaces_session: boolean) =>
    untilAnswered(() => logInBy(code, { replaces_session }), { until });
  try {
    await logInUntilAnswered(false).catch(async (error: unknown) => {
      if (!(error instanceof Refused) || error.code !== 'HUB_OTHER_SESSION') throw error;
      if (await askWhetherToReplace(until)) await logInUntilAnswered(true);
    });
  } finally {
    // Once it is answered, the code stays neither in the address nor in the history.
    if (location.hash === hash) history.replaceState(history.state, '', location.pathname + location.search);
  }
}

/**
 * Asks whether a link may replace the session of another bearer. Anyone can send a link that logs in the sender, whose games
 * would then get what the user uploads.
 */
async function askWhetherToReplace(until: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  until.addEventListener('abort', () => resolve(false), { once: true });
  state.value = { is: 'asked', answer: resolve };
  const answer = await promise;
  if (!until.aborted) state.value = { is: 'unknown' };
  return answer;
}

/** Begins the session of the browser with the code of a link. */
async function logInBy(code: string, options: { replaces_session: boolean }): Promise<void> {
  await request('POST', '/hub/session', { body: { code, ...options } });
  tabs.postMessage('in');
}

async function currentToken(): Promise<Token> {
  const current = await token?.catch(() => undefined);
  return current && current.expires_at - Date.now() > RENEW_BEFORE_MS ? current : await newToken();
}

/** Gets a new token for the session. Later calls of `currentToken` use it while it is valid. */
function newToken(): Promise<Token> {
  if (requested) return requested;
  const own = requestToken();
  token = own;
  requested = own;
  const end = () => {
    if (requested === own) requested = undefined;
  };
  own.then(end, () => setTimeout(end, FAILURE_STANDS_MS));
  return own;
}

async function requestToken(): Promise<Token> {
  try {
    const answer = await request<{ token: string; expire_ts: string } | { token?: never }>(
      'POST',
      '/hub/session/token',
      { body: {}, answer_within_ms: TOKEN_WITHIN_MS },
    );
    if (answer.token === undefined) throw new Refused(401, { code: 'HUB_NOT_LOGGED_IN' });
    return { token: answer.token, expires_at: Date.parse(answer.expire_ts) };
  } catch (error) {
    const is_over = error instanceof Refused && error.status === 401;
    // If several requests find this out, only the first one ends the session.
    if (is_over && state.value.is === 'in') forget({ is: 'out', reason: ENDED });
    throw error;
  }
}

function forget(next: SessionState): void {
  client?.close();
  client = undefined;
  token = undefined;
  requested = undefined;
  is_connected.value = false;
  state.value = next;
}
