import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { Credentials } from './credentials.ts';

/** Time for the API server to answer a call. */
const CALL_TIMEOUT_MS = 15_000;
/** How long a watch lasts. A connection that was cut without notice is found at its end. */
const WATCH_SECONDS = 45;
const WATCH_GRACE_MS = 15_000;
/** Maximum length of an event of a watch. The API server accepts no object of more than 1.5 MiB. */
const EVENT_CHARACTERS_MAX = 4 * 1_024 ** 2;
/** Maximum length of the API server's message in an error of Muster. */
const MESSAGE_CHARACTERS_MAX = 500;

const Refused = Type.Object({ message: Type.String(), reason: Type.Optional(Type.String()) });

export interface ClusterRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  body?: object;
  /** Statuses of 400 and more that the caller expects. */
  expected?: readonly number[];
  /** Ends the call. */
  signal?: AbortSignal;
}

/** Whether this process may change the cluster, and for how long. */
export interface CallLimits {
  /** Returns whether this process may change the cluster now. */
  mayAct(): boolean;
  /** Returns for how many milliseconds no other process changes the cluster. */
  timeLeft(): number;
}

/** The API server did not answer, or could not do its work. */
export class ClusterUnreachable extends Error {}

/** The API server refused a call. */
export class ClusterRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The API server of a cluster. Every call has a deadline. */
export class ClusterClient {
  /** `limits`: by default no other process changes the cluster. */
  constructor(
    private readonly credentials: Credentials,
    private readonly limits?: CallLimits,
  ) {}

  /** Calls the API server. Throws ClusterUnreachable or ClusterRefusal. */
  async call(request: ClusterRequest): Promise<{ status: number; text: string }> {
    const { method, signal } = request;
    const limits = method === 'GET' ? undefined : this.limits;
    const left_ms = limits?.timeLeft() ?? CALL_TIMEOUT_MS;
    if (limits?.mayAct() === false || left_ms <= 0) {
      throw new ClusterUnreachable('another process may have the pods of the cluster by now');
    }
    const deadline = AbortSignal.timeout(Math.min(CALL_TIMEOUT_MS, left_ms));
    let answer: { status: number; text: string };
    try {
      const response = await this.#fetch(request, signal ? AbortSignal.any([signal, deadline]) : deadline);
      answer = { status: response.status, text: await response.text() };
    } catch (cause) {
      throw unreachable(cause);
    }
    if (answer.status >= 400 && !request.expected?.includes(answer.status)) throw refusalOf(answer);
    return answer;
  }

  /** Calls the API server, and returns its answer in the given shape. */
  async read<Shape extends TSchema>(shape: Shape, request: ClusterRequest): Promise<Static<Shape>> {
    const { text } = await this.call(request);
    return parseAs(shape, text);
  }

  /**
   * Yields the events of a watch until the API server ends it, which it does after a while. Calls `onBegin` when the API
   * server has accepted the watch.
   */
  async *watch<Shape extends TSchema>(
    shape: Shape,
    { path, query }: Required<Pick<ClusterRequest, 'path' | 'query'>>,
    { signal, onBegin = () => {} }: { signal: AbortSignal; onBegin?: () => void },
  ) {
    const deadline = AbortSignal.timeout(WATCH_SECONDS * 1_000 + WATCH_GRACE_MS);
    const watch = { watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_SECONDS) };
    const request = { method: 'GET', path, query: { ...query, ...watch } } as const;
    let rest = '';
    try {
      const response = await this.#fetch(request, AbortSignal.any([signal, deadline]));
      if (response.status >= 400) throw refusalOf({ status: response.status, text: await response.text() });
      onBegin();
      for await (const piece of (response.body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
        const lines = (rest + piece).split('\n');
        rest = lines.pop() ?? '';
        if (rest.length > EVENT_CHARACTERS_MAX) throw new Error('an event of the watch is too long');
        for (const line of lines) yield parseAs(shape, line);
      }
    } catch (cause) {
      throw cause instanceof ClusterRefusal || cause instanceof ClusterUnreachable ? cause : unreachable(cause);
    }
  }

  #fetch({ method, path, query = {}, body }: ClusterRequest, signal: AbortSignal): Promise<Response> {
    const { url, token, tls } = this.credentials.access();
    const type = method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json';
    return fetch(`${url}${path}?${new URLSearchParams(query)}`, {
      method,
      signal,
      tls,
      redirect: 'error',
      timeout: false,
      headers: { accept: 'application/json', 'content-type': type, ...(token && { authorization: `Bearer ${token}` }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}

function parseAs<Shape extends TSchema>(shape: Shape, text: string): Static<Shape> {
  const value: unknown = JSON.parse(text);
  if (!Value.Check(shape, value)) {
    const problem = Value.Errors(shape, value).First();
    throw new Error(`the API server gave an unknown answer (${problem?.path}: ${problem?.message})`);
  }
  return value;
}

function unreachable(cause: unknown): ClusterUnreachable {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new ClusterUnreachable(`the API server of the cluster cannot be used now: ${reason}`, { cause });
}

/** Returns the refusal of a call. Overload and faults of the API server are temporary, so they count as unreachable. */
function refusalOf({ status, text }: { status: number; text: string }): ClusterRefusal | ClusterUnreachable {
  let message = text;
  try {
    const value: unknown = JSON.parse(text);
    if (Value.Check(Refused, value)) message = value.message;
  } catch {
    // A proxy before the API server answers in its own words.
  }
  const sentence = message.trim().slice(0, MESSAGE_CHARACTERS_MAX);
  if (status === 429 || status >= 500) return unreachable(new Error(sentence));
  return new ClusterRefusal(status, sentence);
}
