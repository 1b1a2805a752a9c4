import { accessSync, constants, statSync } from 'node:fs';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/** Time for an engine to answer a call that moves no files. */
const CALL_TIMEOUT_MS = 20_000;
/** Maximum length of an engine's message in an error of Muster. */
const MESSAGE_CHARACTERS_MAX = 500;

/** Podman fails to describe containers while one of them ends. */
const READS_MAX = 5;
const READ_PAUSE_MS = 50;

/** The body of a refused call. */
const Refusal = Type.Object({ message: Type.String() });

export interface EngineRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Record<string, string | string[]>;
  /** JSON, or the bytes of a tar. */
  body?: object | ReadableStream<Uint8Array>;
  timeout_ms?: number;
  signal?: AbortSignal;
  /** Statuses of 400 and more that the caller expects. */
  expected?: readonly number[];
}

/** The engine did not answer. */
export class EngineUnreachable extends Error {}

/** The engine refused the call. */
export class EngineRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/**
 * The HTTP API of a container engine, Docker or Podman, at a unix socket. Every call has a deadline, but a stream has
 * none.
 */
export class EngineClient {
  /** When the engine stopped answering, in the time of `performance.now()`; undefined if it answered the last call. */
  unreachable_since: number | undefined;

  constructor(readonly socket: string) {}

  /** Calls the engine, and returns its answer. Throws EngineUnreachable or EngineRefusal. */
  async call(request: EngineRequest): Promise<{ status: number; text: string }> {
    const { timeout_ms = CALL_TIMEOUT_MS, expected = [] } = request;
    const deadline = AbortSignal.timeout(timeout_ms);
    const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
    let answer: { status: number; text: string };
    try {
      const response = await this.#fetch(request, signal);
      answer = { status: response.status, text: await response.text() };
      this.unreachable_since = undefined;
    } catch (cause) {
      throw this.#failureOf(request, cause);
    }
    if (answer.status >= 400 && !expected.includes(answer.status)) {
      throw new EngineRefusal(answer.status, `the container engine says: ${messageOf(answer.text)}`);
    }
    return answer;
  }

  /** Calls the engine, and returns its answer in the given shape. */
  async read<Shape extends TSchema>(shape: Shape, request: EngineRequest): Promise<Static<Shape>> {
    const value = await this.#callUntilDescribed(request);
    if (!Value.Check(shape, value)) throw new Error(`the container engine gave an unknown answer to ${request.path}`);
    return value;
  }

  async #callUntilDescribed(request: EngineRequest): Promise<unknown> {
    for (let read = 1; ; read += 1) {
      try {
        return parseAnswer(await this.call(request), request.path);
      } catch (error) {
        const is_temporary = request.method === 'GET' && error instanceof EngineRefusal && error.status === 500;
        if (!is_temporary || read === READS_MAX) throw error;
        await Bun.sleep(READ_PAUSE_MS);
      }
    }
  }

  /** Opens a stream of bytes that continues until the engine ends it or the signal is aborted. */
  async openStream(request: EngineRequest, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    let response: Response;
    try {
      response = await this.#fetch(request, signal);
    } catch (cause) {
      throw this.#failureOf({ ...request, signal }, cause);
    }
    if (response.status >= 400) {
      throw new EngineRefusal(response.status, `the container engine says: ${messageOf(await response.text())}`);
    }
    return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
  }

  /** Says why the engine does not answer, and what its operator can do. */
  #describeUnavailability(): string {
    const { socket } = this;
    const hint = 'start Docker or Podman, or correct MUSTER_CONTAINER_ENGINE';
    if (!statSync(socket, { throwIfNoEntry: false })?.isSocket()) return `there is no socket at ${socket}: ${hint}`;
    try {
      accessSync(socket, constants.R_OK | constants.W_OK);
    } catch {
      return `Muster may not use the socket ${socket}: check what keeps root out (SELinux, AppArmor or a user namespace)`;
    }
    return `the container engine at ${socket} does not answer: ${hint}`;
  }

  #fetch({ method, path, query = {}, body }: EngineRequest, signal: AbortSignal): Promise<Response> {
    const is_stream = body instanceof ReadableStream;
    const url = new URL(path, 'http://engine');
    for (const [name, values] of Object.entries(query)) {
      for (const value of [values].flat()) url.searchParams.append(name, value);
    }
    return fetch(url, {
      unix: this.socket,
      method,
      signal,
      timeout: false,
      ...(body && { body: is_stream ? body : JSON.stringify(body) }),
      headers: { 'content-type': is_stream ? 'application/x-tar' : 'application/json' },
    });
  }

  #failureOf({ signal, path }: EngineRequest, cause: unknown): unknown {
    if (signal?.aborted) return cause;
    this.unreachable_since ??= performance.now();
    const is_late = cause instanceof Error && cause.name === 'TimeoutError';
    const reason = is_late ? `the container engine took too long to answer ${path}` : this.#describeUnavailability();
    return new EngineUnreachable(reason, { cause });
  }
}

function messageOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (Value.Check(Refusal, value)) return value.message.slice(0, MESSAGE_CHARACTERS_MAX);
  } catch {
    // Podman writes some refusals as text.
  }
  return text.trim().slice(0, MESSAGE_CHARACTERS_MAX);
}

/** Returns an answer's content. Podman ends some answers early, when a container changes meanwhile: a failure of its own. */
function parseAnswer({ text }: { text: string }, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new EngineRefusal(500, `the container engine gave an incomplete answer to ${path}`);
  }
}
