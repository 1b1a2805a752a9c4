import { fitsFrame, readPlace } from './places.ts';
import { poll } from './poll.ts';
import { deliver, endPoll, type Listener, type Stream, Streams, tell } from './streams.ts';
import { endPause, type Pause, startPause, TIMING, type Timing, within } from './timing.ts';
import { type SocketEnd, WatchSocket } from './watch-socket.ts';
import { CLOSE, FRAME_TOO_LONG, type Refusal, SUBPROTOCOL, type Watched } from './wire.ts';

/** So many sockets in a row that come to nothing, and polls do their work until one does. */
const ATTEMPTS_MAX = 3;
/** Events of a page: it is looked at again, or the network is back. */
const WAKING = ['online', 'pageshow', 'visibilitychange'] as const;

export interface ClientOptions {
  /** Where the service is, like `https://muster.example`. */
  url: string;
  /**
   * Who watches; nothing where no token is needed. A function is asked again when the token has expired or was refused,
   * after a socket that did not open (browsers do not say whether it was for the token), and when it gave none for long.
   */
  token?: string | (() => string | Promise<string>) | undefined;
  timing?: Partial<Timing>;
}

export interface WatchOptions {
  /** Only what comes after this index, of any earlier body of the path. Counts before one that is in the path's query. */
  watch_index?: string;
  /** It cannot be watched, or not any more: nothing follows. Without this, the refusal goes to the console. */
  onError?: (error: Refusal) => void;
}

/** A client of a service, for all that one caller watches. It connects when something is watched. */
export function connect(options: ClientOptions): Client {
  return new Client(options);
}

export class Client {
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly #timing: Timing;
  readonly #streams = new Streams();
  /** For all, until it is refused. */
  #token: Promise<string | undefined> | undefined;
  #socket: WatchSocket | undefined;
  /** From the question for the token to the end of the socket. */
  #is_connecting = false;
  /** Sockets in a row that ended before anything good came. */
  #failures = 0;
  #pause: Pause | undefined;
  readonly #closed = new AbortController();

  constructor(options: ClientOptions) {
    this.#url = options.url.replace(/\/$/, '');
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    for (const event of WAKING) globalThis.addEventListener?.(event, this.#wake);
  }

  /**
   * Calls `onBody` with what the GET of the path answers, now and after each change: each index once, in order; of logs
   * with the lines since the body before. Goes on after a lost connection, a restart of the service, a token that has
   * expired. Gives the function that ends it. Throws TypeError for what is no path (from `/` on, with its query), and
   * RangeError for one path too many.
   */
  watch<Body extends Watched = Watched & Record<string, unknown>>(
    path: string,
    onBody: (body: Body) => void,
    { watch_index, onError = report }: WatchOptions = {},
  ): () => void {
    if (this.#isClosed()) throw new TypeError('This client is closed: connect another one.');
    const place = readPlace(path, watch_index);
    // What the body of a path looks like is the caller's knowledge.
    const listener: Listener = { onBody: onBody as Listener['onBody'], onError, is_over: false };
    if (fitsFrame(place.path)) {
      this.#streams.add(place, listener);
      this.#arrange();
    } else {
      queueMicrotask(() => {
        if (!this.#isClosed()) tell({ listeners: new Set([listener]) }, () => onError(FRAME_TOO_LONG));
      });
    }
    return () => {
      listener.is_over = true;
      const stream = this.#streams.find(place.path, listener);
      stream?.listeners.delete(listener);
      if (stream?.listeners.size === 0) this.#remove(stream);
      this.#arrange();
    };
  }

  /** Ends everything. Nobody is called any more. */
  close(): void {
    this.#closed.abort();
    for (const event of WAKING) globalThis.removeEventListener?.(event, this.#wake);
    for (const stream of this.#streams.all()) {
      for (const listener of stream.listeners) listener.is_over = true;
      this.#streams.remove(stream);
    }
    clearTimeout(this.#pause?.timer);
    this.#socket?.end(CLOSE.normal);
  }

  /** Sees to it that every stream is on the socket, polled, or waits. To be called after whatever may have changed that. */
  #arrange(): void {
    const streams = this.#streams.all();
    if (this.#isClosed() || streams.length === 0) return;
    const socket = this.#socket?.isOpen() ? this.#socket : undefined;
    const is_polling = socket !== undefined || this.#failures >= ATTEMPTS_MAX || !hasSockets();
    for (const stream of streams) {
      if (stream.pause !== undefined || socket?.has(stream)) continue;
      if (socket && this.#streams.isFirst(stream) && !stream.is_polled) {
        endPoll(stream);
        socket.subscribe(stream);
      } else if (is_polling && !stream.asking) void this.#poll(stream);
    }
    if (!this.#is_connecting && this.#pause === undefined && hasSockets()) void this.#connect();
  }

  async #connect(): Promise<void> {
    this.#is_connecting = true;
    try {
      const token = await this.#getToken();
      if (this.#isClosed()) return;
      const protocols = [SUBPROTOCOL, ...(token === undefined ? [] : [`bearer.${token}`])];
      const socket = new WebSocket(`${this.#url.replace(/^http/, 'ws')}/watch`, protocols);
      this.#socket = new WatchSocket(socket, this.#timing, {
        onOpen: () => this.#endPauses(),
        onBody: (stream, body) => this.#deliver(stream, body),
        onRefused: (stream, error, retry_after_ms) => this.#hearRefusal(stream, error, retry_after_ms),
        onEnd: (end) => this.#lose(end),
      });
    } catch {
      // No token can be had, or it cannot be sent in this way: the polls find out what it is.
      this.#lose({ code: CLOSE.lost, was_open: false, was_well: false, rest_ms: 0 });
    }
  }

  /** Another socket, after a while; and polls until then if there is little hope. */
  #lose({ code, was_open, was_well, rest_ms }: SocketEnd): void {
    this.#socket = undefined;
    this.#is_connecting = false;
    if (this.#isClosed()) return;
    if (was_well) this.#failures = 0;
    else if (rest_ms > 0) this.#failures = ATTEMPTS_MAX;
    if (code === CLOSE.unauthorized || !was_open) this.#token = undefined;
    this.#pause = startPause({ min_ms: rest_ms, failures: this.#failures }, this.#timing, () => {
      this.#pause = undefined;
      this.#arrange();
    });
    this.#failures += 1;
    this.#arrange();
  }

  #hearRefusal(stream: Stream, error: Refusal, retry_after_ms: number | undefined): void {
    const has_expired = error.code === 'CLAIMS_ENTITLEMENT_EXPIRED' && this.#canRenew();
    if (has_expired) this.#socket?.end(CLOSE.unauthorized);
    else if (error.code === 'WATCH_BAD_FRAME') stream.is_polled = true;
    // A fault of the service has no time to come back at.
    else if (retry_after_ms !== undefined || error.code === 'ERROR') this.#rest(stream, retry_after_ms);
    else this.#refuse(stream, error);
    this.#arrange();
  }

  /** Asks once, for what the stream has not seen; what comes next is up to `#arrange`. */
  async #poll(stream: Stream): Promise<void> {
    const asking = new AbortController();
    stream.asking = asking;
    const late = setTimeout(() => asking.abort(), this.#timing.poll_within_ms);
    const token = this.#getToken();
    const answer = await token
      .then((bearer) => poll(this.#url, stream, bearer, asking.signal))
      // It cannot be reached, or no token can be had.
      .catch(() => ({ kind: 'trouble', retry_after_ms: 0 }) as const);
    clearTimeout(late);
    // The socket has the stream now, or nobody.
    if (stream.asking !== asking) return;
    stream.asking = undefined;
    switch (answer.kind) {
      case 'body':
        this.#deliver(stream, answer.body);
        break;
      case 'trouble':
        this.#rest(stream, answer.retry_after_ms);
        break;
      case 'refusal':
        if (!answer.is_for_token || !this.#canRenew() || stream.has_new_token) {
          this.#refuse(stream, answer.error);
          break;
        }
        stream.has_new_token = true;
        // Another stream may have got a new one already.
        if (this.#token === token) this.#token = undefined;
    }
    this.#arrange();
  }

  #deliver(stream: Stream, body: Watched): void {
    deliver(stream, body);
    for (const emptied of this.#streams.unite(stream.path)) this.#remove(emptied);
  }

  #refuse(stream: Stream, error: Refusal): void {
    this.#remove(stream);
    tell(stream, ({ onError }) => onError(error));
  }

  #rest(stream: Stream, min_ms = 0): void {
    stream.pause = startPause({ min_ms, failures: stream.failures }, this.#timing, () => {
      stream.pause = undefined;
      this.#arrange();
    });
    stream.failures += 1;
  }

  #remove(stream: Stream): void {
    this.#socket?.unsubscribe(stream);
    this.#streams.remove(stream);
  }

  /** There is hope again: only what the service asked for is waited for. */
  #endPauses(): void {
    for (const stream of this.#streams.all()) stream.pause = endPause(stream.pause);
    this.#pause = endPause(this.#pause);
    this.#arrange();
  }

  /** What has slept may be dead without knowing: sockets are asked whether they are there, and polls are asked again. */
  readonly #wake = ({ type }: Event): void => {
    if (type === 'visibilitychange' && globalThis.document?.visibilityState === 'hidden') return;
    this.#socket?.ping();
    for (const stream of this.#streams.all()) endPoll(stream);
    this.#endPauses();
  };

  #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  #canRenew(): boolean {
    return typeof this.#options.token === 'function';
  }

  #getToken(): Promise<string | undefined> {
    const { token } = this.#options;
    if (this.#token) return this.#token;
    const given = (async () => (typeof token === 'function' ? await token() : token))();
    const asked = within(this.#timing.poll_within_ms, this.#closed.signal, given);
    this.#token = asked;
    // Whoever waits for it hears that there is none; the next one asks again.
    asked.catch(() => {
      if (this.#token === asked) this.#token = undefined;
    });
    return asked;
  }
}

/** Node has none before version 22. */
function hasSockets(): boolean {
  return typeof WebSocket !== 'undefined';
}

function report({ code, message }: Refusal): void {
  console.error(`watch: ${code}: ${message}`);
}
