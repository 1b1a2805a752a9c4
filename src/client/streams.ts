import type { Position } from './positions.ts';
import type { Pause } from './timing.ts';
import type { Refusal, Watched } from './wire.ts';

/** The service's maximum of subscriptions of a socket. */
const PATHS_MAX = 256;

/** The callbacks of one `watch`. */
export interface Listener {
  onBody(body: Watched): void;
  onError(error: Refusal): void;
  onDelayed(error: Refusal): void;
  is_over: boolean;
}

/** The listeners of a path that have seen the same index. They share what follows. */
export interface Stream extends Position {
  listeners: Set<Listener>;
  /** Aborts the poll in progress. */
  poll_in_progress?: AbortController | undefined;
  /** The pause before the next attempt. */
  pause?: Pause | undefined;
  /** Failures in a row. */
  failures: number;
  /** Whether a new token was requested since the service last accepted one for this stream. */
  has_new_token: boolean;
  /** Whether the stream polls because the socket already watches the view by another spelling of the path. */
  must_poll: boolean;
}

/** All streams of a client. The first one of a path uses the socket; the others poll until they have caught up with it. */
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

  /** Adds a listener that has seen `index`. Throws RangeError for too many paths. */
  add({ path, index }: Position, listener: Listener): void {
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
    const stream: Stream = { path, index, listeners, failures: 0, has_new_token: false, must_poll: false };
    this.#by_path.set(path, [...streams, stream]);
  }

  /** Removes a stream and ends its poll and its pause. */
  remove(stream: Stream): void {
    endPoll(stream);
    clearTimeout(stream.pause?.timer);
    const left = this.#of(stream.path).filter((other) => other !== stream);
    if (left.length > 0) this.#by_path.set(stream.path, left);
    else this.#by_path.delete(stream.path);
  }

  /** Merges streams of a path that have seen the same index. Returns the streams that were merged into another. */
  merge(path: string): Stream[] {
    const first_by_index = new Map<string | undefined, Stream>();
    const merged: Stream[] = [];
    for (const stream of this.#of(path)) {
      const first = first_by_index.get(stream.index);
      if (!first) {
        first_by_index.set(stream.index, stream);
        continue;
      }
      for (const listener of stream.listeners) first.listeners.add(listener);
      merged.push(stream);
    }
    return merged;
  }

  #of(path: string): Stream[] {
    return this.#by_path.get(path) ?? [];
  }
}

export function endPoll(stream: Stream): void {
  stream.poll_in_progress?.abort();
  stream.poll_in_progress = undefined;
}

/** Delivers a body to the listeners of a stream, each index once. */
export function deliver(stream: Stream, body: Watched): void {
  stream.failures = 0;
  stream.has_new_token = false;
  if (body.watch.index === stream.index) return;
  stream.index = body.watch.index;
  notify(stream, ({ onBody }) => onBody(body));
}

/** Calls each listener. An error of a callback becomes an uncaught error, and the other listeners are still called. */
export function notify({ listeners }: Pick<Stream, 'listeners'>, call: (listener: Listener) => void): void {
  for (const listener of [...listeners]) {
    // An earlier callback may have ended this listener.
    if (!listener.is_over) callBack(() => call(listener));
  }
}

/** Calls a callback of the page. An error of it becomes an uncaught error, and the client goes on. */
export function callBack(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
