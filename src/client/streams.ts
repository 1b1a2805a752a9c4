import type { Place } from './places.ts';
import type { Pause } from './timing.ts';
import type { Refusal, Watched } from './wire.ts';

/** As many as one socket takes. */
const PATHS_MAX = 256;

/** One who watches. */
export interface Listener {
  onBody(body: Watched): void;
  onError(error: Refusal): void;
  is_over: boolean;
}

/** Those who have seen the same of a path, and go on together. */
export interface Stream extends Place {
  listeners: Set<Listener>;
  /** The poll that is under way. */
  asking?: AbortController | undefined;
  /** Until it is tried again. */
  pause?: Pause | undefined;
  /** In a row. */
  failures: number;
  /** Whether another token was asked for since the last body. */
  has_new_token: boolean;
  /** The socket has the same by a path that is written in another way. */
  is_polled: boolean;
}

/** All streams of a client. The first of a path is seen by the socket; others poll until they have seen the same as it. */
export class Streams {
  readonly #by_path = new Map<string, Stream[]>();

  all(): Stream[] {
    return [...this.#by_path.values()].flat();
  }

  isFirst(stream: Stream): boolean {
    return this.#of(stream.path)[0] === stream;
  }

  find(path: string, listener: Listener): Stream | undefined {
    return this.#of(path).find(({ listeners }) => listeners.has(listener));
  }

  /** Adds somebody who has seen `index`. Throws RangeError when it is one path too many. */
  add({ path, index }: Place, listener: Listener): void {
    const streams = this.#of(path);
    const same = streams.find((stream) => stream.index === index);
    if (same) {
      same.listeners.add(listener);
      return;
    }
    if (streams.length === 0 && this.#by_path.size >= PATHS_MAX) {
      throw new RangeError(`A client can watch ${PATHS_MAX} paths: stop one, or connect another client.`);
    }
    const listeners = new Set([listener]);
    const stream: Stream = { path, index, listeners, failures: 0, has_new_token: false, is_polled: false };
    this.#by_path.set(path, [...streams, stream]);
  }

  /** Its poll and its pause end too. */
  remove(stream: Stream): void {
    endPoll(stream);
    clearTimeout(stream.pause?.timer);
    const left = this.#of(stream.path).filter((other) => other !== stream);
    if (left.length > 0) this.#by_path.set(stream.path, left);
    else this.#by_path.delete(stream.path);
  }

  /** Puts those together who have seen the same of a path. Gives the streams that are left without anybody. */
  unite(path: string): Stream[] {
    const first_by_index = new Map<string | undefined, Stream>();
    const emptied: Stream[] = [];
    for (const stream of this.#of(path)) {
      const first = first_by_index.get(stream.index);
      if (!first) {
        first_by_index.set(stream.index, stream);
        continue;
      }
      for (const listener of stream.listeners) first.listeners.add(listener);
      emptied.push(stream);
    }
    return emptied;
  }

  #of(path: string): Stream[] {
    return this.#by_path.get(path) ?? [];
  }
}

export function endPoll(stream: Stream): void {
  stream.asking?.abort();
  stream.asking = undefined;
}

/** Tells those of a stream what is new, each index once. */
export function deliver(stream: Stream, body: Watched): void {
  stream.failures = 0;
  stream.has_new_token = false;
  if (body.watch.index === stream.index) return;
  stream.index = body.watch.index;
  tell(stream, ({ onBody }) => onBody(body));
}

/** What a callback throws is nobody's to catch here, and keeps the others from nothing. */
export function tell({ listeners }: Pick<Stream, 'listeners'>, say: (listener: Listener) => void): void {
  for (const listener of [...listeners]) {
    // One of the others may have ended it.
    if (listener.is_over) continue;
    try {
      say(listener);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
