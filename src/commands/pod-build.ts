import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackArchive } from '../features/builds/archives/unpack.ts';
import { hashStream } from '../features/builds/hashed-stream.ts';
import type { BuildOrder } from '../features/servers/runtimes/kubernetes/pod-messages.ts';

interface FetchLimits {
  /** Time to fetch a build, in which Muster may have to unpack it first. */
  fetch_max_ms: number;
  /** How long Muster may send nothing: a paused process accepts a request and is silent, but another one may answer. */
  silent_max_ms: number;
  /** Time for Muster to answer, in which it may restart. */
  answer_max_ms: number;
  /** Pause before another attempt. */
  pause_ms: number;
}

/** Characters of a refusal's text that a reason repeats. */
const TEXT_CHARACTERS_MAX = 100;
/** Muster answers within 45 s, also if it has to unpack the build. */
const LIMITS: FetchLimits = {
  fetch_max_ms: 10 * 60_000,
  silent_max_ms: 60_000,
  answer_max_ms: 2 * 60_000,
  pause_ms: 1_000,
};

/** Muster did not answer. */
class Unanswered extends Error {}

/**
 * Fetches a build into a directory, and tries again after failures. Returns undefined once it is there, or else why it could
 * not be fetched and what to do.
 */
export async function fetchBuild(
  order: BuildOrder,
  directory: string,
  { fetch_max_ms, silent_max_ms, answer_max_ms, pause_ms } = LIMITS,
): Promise<string | undefined> {
  const started = performance.now();
  let answered_at = started;
  for (; ; await Bun.sleep(pause_ms)) {
    try {
      using silence = new SilenceLimit(silent_max_ms);
      const signal = AbortSignal.any([AbortSignal.timeout(fetch_max_ms), silence.signal]);
      const body = await request(order, signal);
      await unpack(silence.watch(body), order, directory);
      return undefined;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      console.error(reason);
      const now = performance.now();
      const is_unanswered = cause instanceof Unanswered;
      if (!is_unanswered) answered_at = now;
      if (now - started < fetch_max_ms && now - answered_at < answer_max_ms) continue;
      return is_unanswered
        ? `Muster could not be reached from its node: ${reason}; tell the operator to check MUSTER_KUBERNETES_HOST`
        : `${reason}; tell the operator to look at the log of Muster`;
    }
  }
}

/** Ends a request when nothing was received for a time. */
class SilenceLimit implements Disposable {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  #timer: Timer | undefined;

  constructor(private readonly silent_max_ms: number) {
    this.#restartTimer();
  }

  /** Returns a body with the same bytes. Each piece of it that arrives starts the time anew. */
  watch(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    return body.pipeThrough(
      new TransformStream({
        transform: (bytes, controller) => {
          this.#restartTimer();
          controller.enqueue(bytes);
        },
      }),
    );
  }

  #restartTimer(): void {
    clearTimeout(this.#timer);
    const reason = new Error(`Muster sent nothing for ${this.silent_max_ms / 1_000} s`);
    this.#timer = setTimeout(() => this.#controller.abort(reason), this.silent_max_ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

async function request({ url, token }: BuildOrder, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(url, { headers, signal, redirect: 'error' }).catch((cause: unknown) => {
    throw new Unanswered(cause instanceof Error ? cause.message : String(cause), { cause });
  });
  if (answer.ok && answer.body) return answer.body;
  const text = (await answer.text()).trim().slice(0, TEXT_CHARACTERS_MAX);
  throw new Error(`${new URL(url).origin} answers with the status ${answer.status} (${text})`);
}

async function unpack(body: ReadableStream<Uint8Array>, { sha256 }: BuildOrder, directory: string): Promise<void> {
  // A part of an earlier attempt may be there.
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  const file = hashStream(body);
  await unpackArchive(file.stream, directory);
  if ((await file.digest()) !== sha256) throw new Error('the build was damaged on its way');
}
