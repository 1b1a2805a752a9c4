import { EXIT, Failure } from '../terminal/failure.ts';
import { loginAdvice } from './given-token.ts';
import { isRecord } from './is-record.ts';
import { trustFor } from './local-service.ts';
import { pause } from './pause.ts';

/** How many times a read is tried, because its first failures may be temporary. */
const ATTEMPTS_MAX = 4;
/** Attempts of a read that goes on for long. They outlast a restart of the service: about two minutes. */
export const LONG_ATTEMPTS_MAX = 20;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 8_000;
/** A read is not repeated if the service asks for a longer pause. */
const RETRY_AFTER_MAX_MS = 30_000;
/** Longer than a service holds a long poll (50 s at most). A request that may take longer has a time of its own. */
const TIMEOUT_MS = 100_000;
/** Enough for a restart of the service, and for a part on a slow line. */
const UPLOAD = { attempts_max: 7, timeout_ms: 600_000 };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Call {
  query?: Record<string, string | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** Whether a change may be sent again, as a GET is: repeating it is harmless. */
  is_repeatable?: boolean;
  /** How many times a GET or a repeatable change is sent if it fails in a way that may pass. */
  attempts_max?: number | undefined;
  timeout_ms?: number | undefined;
}

interface CallerOptions {
  stopping?: AbortSignal | undefined;
  login_advice?: string;
}

interface Request {
  method: Method;
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  signal?: AbortSignal | undefined;
  /** By default, redirects are followed. */
  redirect?: RequestRedirect;
  timeout_ms: number;
  /** How many times it is sent if it fails in a way that may pass. */
  attempts_max: number;
}

/** The answer to a request, read to its end. */
interface Answer {
  response: Response;
  text: string;
}

/** The body of a refusal. */
interface RefusalBody {
  code: string;
  message: string;
  ray_id?: string;
  metadata?: unknown;
}

/** Codes that refuse a token: it is missing, invalid, expired or revoked, or of a kind that the request does not take. */
const REFUSES_TOKEN = /^(API_UNAUTHORIZED|CLAIMS_.*|TOKEN_INVALID|TOKEN_REVOKED)$/;
/** The code that refuses a token for its kind. Another login gets a token of the same kind. */
export const WRONG_KIND = 'CLAIMS_MISSING_ENTITLEMENT';
/** What a proxy answers if it does not reach the service. */
const OF_PROXY = new Set([502, 503, 504]);
/** Failures of TLS, which stay until the certificate is another one or is trusted. */
const CERTIFICATE_PROBLEM = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/;
/** What Bun adds to some messages. The advice asks it already. */
const QUESTION_OF_BUN = / ?Is the computer able to access the url\?/;
/** Refusals of a busy service, and what a proxy answers when the service or the object storage is unavailable. */
const MAY_PASS = new Set([429, 502, 503, 504]);

/**
 * Calls the API of a service. Sends a GET, a repeatable change or a part of an upload again if it got no complete answer, or
 * a refusal that may pass. Throws Failure.
 */
export class ApiCaller {
  /** Ends reads and uploads. A change that was sent gets its answer; after that, no request is sent. */
  readonly stopping: AbortSignal | undefined;
  /** What to do if the service refuses the token, or needs one: a sentence. */
  readonly login_advice: string;

  constructor(
    readonly url: string,
    readonly token: string | undefined,
    { stopping, login_advice = loginAdvice(url, undefined) }: CallerOptions = {},
  ) {
    this.stopping = stopping;
    this.login_advice = login_advice;
  }

  get<Body>(path: string, call: Call = {}): Promise<Body> {
    return this.call<Body>('GET', path, call);
  }

  async call<Body>(method: Method, path: string, call: Call = {}): Promise<Body> {
    const text = await this.callForText(method, path, call);
    try {
      return JSON.parse(text);
    } catch {
      throw new Failure(notMuster(this.url));
    }
  }

  /** Returns the body of an answer as text, whatever its format. */
  async callForText(method: Method, path: string, call: Call = {}): Promise<string> {
    const { query = {}, body, signal, is_repeatable = method === 'GET' } = call;
    const { attempts_max = ATTEMPTS_MAX, timeout_ms = TIMEOUT_MS } = call;
    const url = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return await this.#request(url, {
      method,
      ...(this.token !== undefined && { headers: { authorization: `Bearer ${this.token}` } }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: method === 'GET' ? this.#orStopping(signal) : signal,
      // Behind a redirect, a change would become a read, and the token would be missing.
      redirect: 'manual',
      timeout_ms,
      attempts_max: is_repeatable ? attempts_max : 1,
    });
  }

  /** Sends a part of a file to its signed address. A part that arrives twice counts once. */
  async sendPart(address: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#request(new URL(address), { method: 'PUT', body, signal: this.stopping, ...UPLOAD });
  }

  async #request(url: URL, request: Request): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      this.stopping?.throwIfAborted();
      const answer = await this.#send(url, request);
      if (!(answer instanceof Error) && answer.response.ok) return answer.text;
      const pause_ms = pauseAfter(answer, attempt);
      const may_pass = answer instanceof Error ? !hasCertificateProblem(answer) : MAY_PASS.has(answer.response.status);
      if (!may_pass || attempt === request.attempts_max || pause_ms > RETRY_AFTER_MAX_MS)
        throw this.#failureOf(url, answer);
      await pause(pause_ms, request.signal);
    }
  }

  #orStopping(signal: AbortSignal | undefined): AbortSignal | undefined {
    return this.stopping && signal ? AbortSignal.any([this.stopping, signal]) : (this.stopping ?? signal);
  }

  async #send(url: URL, { signal, timeout_ms, attempts_max: _, ...request }: Request): Promise<Answer | Error> {
    const deadline = AbortSignal.timeout(timeout_ms);
    try {
      const response = await fetch(url, {
        ...request,
        tls: trustFor(url),
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      return { response, text: await response.text() };
    } catch (cause) {
      if (signal?.aborted) throw cause;
      return cause instanceof Error ? cause : new Error(String(cause));
    }
  }

  #failureOf(url: URL, answer: Answer | Error): Failure {
    if (answer instanceof Error) {
      return this.#unansweredFailure(url, answer);
    }
    const { response, text } = answer;
    const location = response.headers.get('location');
    if (location !== null && URL.canParse(location, url)) return this.#redirectFailure(url, new URL(location, url));
    const refusal = parse(text);
    const { status } = response;
    return isRefusal(refusal) ? this.toFailure(refusal, status) : this.#foreignFailure(url, status, text);
  }

  /** Returns the failure of a request without an answer. */
  #unansweredFailure(url: URL, error: Error): Failure {
    const address = this.#isOwn(url) ? this.url : url.origin;
    if (hasCertificateProblem(error)) {
      const advice =
        'If an authority of your own has signed it (with MUSTER_TLS_LOCAL, local-ca.pem of the data directory), set NODE_EXTRA_CA_CERTS to its file.';
      return new Failure(`The certificate of ${address} is not trusted here (${error.message}). ${advice}`);
    }
    const is_late = error.name === 'TimeoutError';
    const why = error.message.replace(QUESTION_OF_BUN, '').replace(/\.$/, '');
    const reason = is_late ? 'did not answer in time' : `cannot be reached (${why})`;
    const advice = this.#isOwn(url)
      ? 'Is the service running, and is the address right (--url, MUSTER_URL or "muster use")?'
      : 'The service names this address for uploads: its operator has to correct it, or to let you reach it.';
    return new Failure(`${address} ${reason}. ${advice}`, is_late ? EXIT.timed_out : EXIT.failed);
  }

  /** Returns the failure of a request that something else than the service answered: a proxy, a storage, another program. */
  #foreignFailure(url: URL, status: number, text: string): Failure {
    const refusal = { code: `HTTP_${status}`, ray_id: undefined };
    if (!this.#isOwn(url)) {
      const words = `${url.origin}, which the service names for uploads, answered ${status}: ${text.slice(0, 300)}`;
      return new Failure(words, EXIT.failed, refusal);
    }
    const words = OF_PROXY.has(status)
      ? `A proxy at ${this.url} answered ${status}: is the service behind it running?`
      : notMuster(this.url, status);
    return new Failure(words, EXIT.failed, refusal);
  }

  /** Returns whether an address is the service's own. Another one is that of the storage for uploads. */
  #isOwn(url: URL): boolean {
    return url.origin === new URL(this.url).origin;
  }

  #redirectFailure({ pathname, search, href }: URL, target: URL): Failure {
    const path = pathname.slice(new URL(this.url).pathname.replace(/\/$/, '').length) + search;
    if (!target.href.endsWith(path))
      return new Failure(`${href} leads to ${target.href}, and has no answer of its own.`);
    const address = target.href.slice(0, -path.length);
    return new Failure(
      `The service is at ${address}: use that address (muster login ${address}, --url or MUSTER_URL).`,
    );
  }

  /** Returns the failure with which a command ends because of a refusal. What a socket refuses has no status. */
  toFailure({ code, message, ray_id, metadata }: RefusalBody, status?: number): Failure {
    const exit_code = exitCodeOf(code, status);
    const needs_login = exit_code === EXIT.not_logged_in && code !== WRONG_KIND;
    const advice = needs_login && this.login_advice !== '' ? ` ${this.login_advice}` : '';
    return new Failure(`${message}${advice}`, exit_code, { code, ray_id, metadata });
  }
}

function pauseAfter(answer: Answer | Error, attempt: number): number {
  const asked = answer instanceof Error ? 0 : Number(answer.response.headers.get('retry-after')) * 1_000;
  return Math.max(asked || 0, Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** (attempt - 1)));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRefusal(body: unknown): body is RefusalBody {
  return isRecord(body) && typeof body.code === 'string' && typeof body.message === 'string';
}

/** Returns a sentence about an answer that is not the service's. */
function notMuster(url: string, status?: number): string {
  const answered = status === undefined ? '' : ` (status ${status})`;
  const advice = 'Check the address (--url, MUSTER_URL or "muster use"), and that no other program uses the port.';
  return `${url} did not answer as Muster does${answered}. ${advice}`;
}

function hasCertificateProblem(error: Error): boolean {
  return 'code' in error && CERTIFICATE_PROBLEM.test(String(error.code));
}

function exitCodeOf(code: string, status: number | undefined): number {
  if (status === 401 || REFUSES_TOKEN.test(code)) return EXIT.not_logged_in;
  if (status === 404 || (status === undefined && code.endsWith('_NOT_FOUND'))) return EXIT.not_found;
  return code === 'API_REQUEST_TIMEOUT' ? EXIT.timed_out : EXIT.failed;
}
