import type { Stream } from './streams.ts';
import type { Timing } from './timing.ts';
import { CLOSE, type Frame, parseFrame, type Refusal, type Watched } from './wire.ts';

/** Callbacks of a socket. */
interface SocketEvents {
  onOpen(): void;
  onBody(stream: Stream, body: Watched): void;
  /** Called when a subscription was refused, or has ended. */
  onRefused(stream: Stream, error: Refusal, retry_after_ms: number | undefined): void;
  /** Called once. */
  onEnd(end: SocketEnd): void;
}

export interface SocketEnd {
  code: number;
  was_open: boolean;
  /** Whether the client has received a frame other than an error. */
  was_useful: boolean;
  /** How long the service asked the client to wait before another attempt. */
  retry_after_ms: number;
}

/** One WebSocket and its subscriptions. It ends when it is closed, or when the service does not answer. */
export class WatchSocket {
  readonly #socket: WebSocket;
  readonly #timing: Timing;
  readonly #events: SocketEvents;
  readonly #ids = new Map<Stream, string>();
  readonly #by_id = new Map<string, Stream>();
  readonly #by_key = new Map<string, Stream>();
  #last_id = 0;
  #timer: ReturnType<typeof setTimeout>;
  #was_open = false;
  #was_useful = false;
  #retry_after_ms = 0;

  constructor(socket: WebSocket, timing: Timing, events: SocketEvents) {
    this.#socket = socket;
    this.#timing = timing;
    this.#events = events;
    this.#timer = setTimeout(() => this.end(), timing.open_within_ms);
    socket.onopen = () => {
      this.#was_open = true;
      events.onOpen();
    };
    socket.onmessage = ({ data }) => {
      const frame = parseFrame(data);
      // Something other than the service has sent it.
      if (!frame) return this.end();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.ping(), timing.ping_after_ms);
      this.#read(frame);
    };
    socket.onclose = ({ code }) => this.end(code);
  }

  isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  has(stream: Stream): boolean {
    return this.#ids.has(stream);
  }

  subscribe(stream: Stream): void {
    this.#last_id += 1;
    const id = String(this.#last_id);
    this.#ids.set(stream, id);
    this.#by_id.set(id, stream);
    this.#send({ type: 'subscribe', id, path: stream.path, watch_index: stream.index });
  }

  unsubscribe(stream: Stream): void {
    const id = this.#forget(stream);
    if (id !== undefined) this.#send({ type: 'unsubscribe', id });
  }

  /** Sends a ping. The socket ends if it is not answered in time. */
  ping(): void {
    if (!this.isOpen()) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), this.#timing.pong_within_ms);
    this.#send({ type: 'ping' });
  }

  /** Ends the socket without waiting for the close handshake, which a dead connection never completes. */
  end(code: number = CLOSE.lost): void {
    clearTimeout(this.#timer);
    this.#socket.onopen = null;
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
    this.#socket.close();
    this.#events.onEnd({
      code,
      was_open: this.#was_open,
      was_useful: this.#was_useful,
      retry_after_ms: this.#retry_after_ms,
    });
  }

  #read(frame: Frame): void {
    if (frame.type === 'error') {
      const { id, error, retry_after_ms } = frame;
      const stream = id === undefined ? undefined : this.#by_id.get(id);
      // The error is for the whole socket, which closes next.
      if (id === undefined) this.#retry_after_ms = retry_after_ms ?? 0;
      if (!stream) return;
      this.#forget(stream);
      this.#events.onRefused(stream, error, retry_after_ms);
      return;
    }
    this.#was_useful = true;
    if (frame.type === 'subscribed') {
      const stream = this.#by_id.get(frame.id);
      if (!stream) return;
      this.#by_key.set(frame.key, stream);
      stream.has_new_token = false;
    } else if (frame.type === 'body') {
      const stream = this.#by_key.get(frame.key);
      if (stream) this.#events.onBody(stream, frame.body);
    }
  }

  #forget(stream: Stream): string | undefined {
    const id = this.#ids.get(stream);
    this.#ids.delete(stream);
    if (id !== undefined) this.#by_id.delete(id);
    for (const [key, other] of this.#by_key) if (other === stream) this.#by_key.delete(key);
    return id;
  }

  #send(frame: object): void {
    if (this.isOpen()) this.#socket.send(JSON.stringify(frame));
  }
}
