import { ANSWER_WITHIN_MS } from '../../shared/request-time.ts';

/** Statuses by which a proxy says that the service is away. */
const AWAY = [502, 503, 504];
/** The pause after a request without an answer. */
const RETRY_AFTER_MS = 2_000;
/** How long a request may take. A connection that has died silently gives no answer, and no failure for minutes. */
const WITHIN_MS = {
  /** Longer than a service takes by default (50 s). A page repeats a read, so it need not wait for the longest answer. */
  read: 60_000,
  /** A page cannot tell whether a change without an answer was made, so it waits for longer than a service takes. */
  change: ANSWER_WITHIN_MS,
};
/** The characters of tokens. A browser sends no header with others. */
const TOKEN = /^[\x21-\x7e]+$/;

/** The body of a refusal. That of a proxy may have none of these members. */
interface RefusedAnswer {
  code?: string;
  message?: string;
  ray_id?: string;
  metadata?: unknown;
}

/** A refused request: the service's own words. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly ray_id: string | undefined;
  readonly metadata: unknown;

  constructor(status: number, { code, message, ray_id, metadata }: RefusedAnswer) {
    super(message ?? `The service answered with the status ${status}.`);
    this.status = status;
    this.code = code ?? `HTTP_${status}`;
    this.ray_id = ray_id;
    this.metadata = metadata;
  }
}

/** A request without an answer of the service: it is away, or the network is, or a proxy has answered for it. */
export class Unreachable extends Error {
  constructor(options?: ErrorOptions) {
    super('The service does not answer. Try again when it does.', options);
  }
}

/** Returns whether a request failed for a reason that passes: the same one succeeds later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof Refused && (error.status === 503 || error.code === 'API_RATE_LIMIT');
}

/** Returns whether a request failed for a reason that says nothing about its caller. */
export function isFailureOfService(error: unknown): boolean {
  return isPassing(error) || (error instanceof Refused && error.status >= 500);
}

interface Repeating {
  until: AbortSignal | undefined;
  repeats?(error: unknown): boolean;
}

/** Sends a request again and again while it fails for a passing reason. Gives up once `until` is aborted. */
export async function untilAnswered<Answer>(
  send: () => Promise<Answer>,
  { until, repeats = isPassing }: Repeating,
): Promise<Answer> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!repeats(error) || until?.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_AFTER_MS));
    until?.throwIfAborted();
  }
}

interface RequestOptions {
  bearer?: string;
  body?: unknown;
  /** Ends the request. */
  until?: AbortSignal | undefined;
  answer_within_ms?: number;
}

/** Sends a request of the API. Throws Refused or Unreachable. */
export async function request<Answer>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { bearer, body, until } = options;
  const { answer_within_ms = method === 'GET' ? WITHIN_MS.read : WITHIN_MS.change } = options;
  if (bearer !== undefined && !TOKEN.test(bearer)) {
    const message = 'This is not a Muster token: it has characters that no token has. Copy it again.';
    throw new Refused(401, { code: 'TOKEN_INVALID', message });
  }
  const { status, text } = await exchange(path, {
    method,
    headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.any([AbortSignal.timeout(answer_within_ms), ...(until ? [until] : [])]),
  });
  const answer = parse(text);
  // The service always answers with JSON, and a refusal of it has a code. The rest is of a proxy: for a service that is away,
  // or to log people in.
  const is_of_proxy = status < 400 ? answer === undefined : AWAY.includes(status) && answer?.code === undefined;
  if (is_of_proxy) throw new Unreachable();
  if (status < 400) return answer as Answer;
  throw new Refused(status, answer ?? {});
}

/** Sends a request. Throws Unreachable. */
async function exchange(path: string, sent: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(path, sent);
    return { status: response.status, text: await response.text() };
  } catch (cause) {
    throw new Unreachable({ cause });
  }
}

function parse(text: string): RefusedAnswer | undefined {
  try {
    return JSON.parse(text);
  } catch {
    // The page of a proxy.
    return undefined;
  }
}
