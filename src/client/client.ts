import { type Answer, poll } from './poll.ts';
import { fitsFrame, readPosition } from './positions.ts';
import { applyRows, type RowsBody, type WholeBody } from './rows.ts';
import { callBack, deliver, endPoll, type Listener, notify, type Stream, Streams } from './streams.ts';
import { endPause, type Pause, startPause, TIMING, type Timing, within } from './timing.ts';
import { type SocketEnd, WatchSocket } from './watch-socket.ts';
import { CLOSE, FRAME_TOO_LONG, isForToken, type Refusal, SUBPROTOCOL, type Watched } from './wire.ts';

/** Number of failed sockets in a row after which the client polls until a socket works. */
const ATTEMPTS_MAX = 3;
/** Browser events after which connections may be dead: the page is visible again, or the network is back. */
const WAKING = ['online', 'pageshow', 'visibilitychange'] as const;

export interface ClientOptions {
  /** The address of the service, like `https://muster.example`. */
  url: string;
  /**
   * The caller's token, if one is needed. A function is called again when its token has expired, was revoked or was refused;
   * when its last call failed or took too long; and when a socket did not open while the client does not poll, because
   * browsers do not say whether the token was the reason. Of several failed calls in a row, the console shows the first.
   */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Called when changes begin to be pushed, and when that ends; the client goes on by itself. */
  onConnection?: (is_connected: boolean) => void;
  /** Opens a socket, for programs that reach the service through a proxy. By default `new WebSocket`. */
  openSocket?: (url: string, protocols: string[]) => WebSocket;
  timing?: Partial<Timing>;
}

export interface WatchOptions {
  /** Index of an earlier body of the path, to get only later changes. Overrides an index in the path's query. */
  watch_index?: string;
  /** Called when the path cannot be watched (any longer). No body follows. By default, the console shows the error. */
  onError?: (error: Refusal) => void;
  /**
   * Called each time the service refuses the path for a reason that passes, such as too many watchers of the caller. The
   * client tries again. By default, the console shows the error.
   */
  onDelayed?: (error: Refusal) => void;
}

/** Creates a client for everything that one caller watches. It connects at the first `watch`. Throws TypeError for an invalid URL. */
export function connect(options: ClientOptions): Client {
  return new Client(options);
}

export class Client {
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly #timing: Timing;
  readonly #streams = new Streams();
  /** The token of the socket and all polls, until it is refused. */
  #token: Promise<string | undefined> | undefined;
  /** Whether the last request for a token failed. */
  #is_without_token = false;
  #socket: WatchSocket | undefined;
  /** True from the request for a token until the socket of that attempt ends. */
  #has_attempt = false;
  /** Number of sockets in a row that ended before a useful frame. */
  #failures = 0;
  #pause: Pause | undefined;
  readonly #closed = new AbortController();

  constructor(options: ClientOptions) {
    if (!isAddress(options.url)) {
      throw new TypeError(`"${options.url}" is not the address of a service: begin it with http:// or https://.`);
    }
    this.#url = options.url.replace(/\/$/, '');
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    for (const event of WAKING) globalThis.addEventListener?.(event, this.#wake);
  }

  /**
   * Calls `onBody` with the body of the path's GET, now and after each change. Each index comes once and in order; a body
   * of a log has the lines since the previous one. Continues after a lost connection, a restart of the service and an
   * expired token. Returns the function that ends it. Throws TypeError for an invalid path or a closed client, and
   * RangeError for too many paths.
   */
  watch<Body extends Watched = Watched & Record<string, unknown>>(
    path: string,
    onBody: (body: Body) => void,
    { watch_index, onError = report, onDelayed = report }: WatchOptions = {},
  ): () => void {
    if (this.#isClosed()) throw new TypeError('This client is closed: connect another one.');
    const position = readPosition(path, watch_index);
    // The caller knows the type of the path's body.
    const listener: Listener = { onBody: onBody as Listener['onBody'], onError, onDelayed, is_over: false };
    if (fitsFrame(position.path)) {
      this.#streams.add(position, listener);
      this.#arrange();
    } else {
      queueMicrotask(() => {
        if (!this.#isClosed()) notify({ listeners: new Set([listener]) }, () => onError(FRAME_TOO_LONG));
      });
    }
    return () => {
      listener.is_over = true;
      const stream = this.#streams.find(position.path, listener);
      stream?.listeners.delete(listener);
      if (stream?.listeners.size === 0) this.#remove(stream);
      this.#arrange();
    };
  }

  /**
   * Like `watch`, for lists whose bodies have `rows` or `changes`: calls `onRows` with all rows of the list, now and after
   * each change. Rows that did not change are the same objects as before.
   */
  watchRows<Body extends RowsBody<object>>(
    path: string,
    onRows: (body: WholeBody<Body>) => void,
    options: Omit<WatchOptions, 'watch_index'> = {},
  ): () => void {
    let rows: object[] = [];
    const onBody = ({ changes, ...body }: Body) => {
      rows = applyRows(rows, { ...body, ...(changes && { changes }) });
      // The caller knows the type of the rows.
      onRows({ ...body, rows } as unknown as WholeBody<Body>);
    };
    // Without an index, so that the first body has all rows.
    return this.watch<Body>(readPosition(path, undefined).path, onBody, options);
  }

  /** Ends everything. No callback is called afterwards. */
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

  /** Subscribes each stream on the socket, polls it, or lets it wait. Called after every event that may change this. */
  #arrange(): void {
    const streams = this.#streams.all();
    if (this.#isClosed() || streams.length === 0) return;
    const socket = this.#socket?.isOpen() ? this.#socket : undefined;
    const may_poll = socket !== undefined || this.#failures >= ATTEMPTS_MAX || !this.#hasSockets();
    for (const stream of streams) {
      if (stream.pause !== undefined || socket?.has(stream)) continue;
      if (socket && this.#streams.isFirst(stream) && !stream.must_poll) {
        endPoll(stream);
        socket.subscribe(stream);
      } else if (may_poll && !stream.poll_in_progress) void this.#poll(stream);
    }
    if (!this.#has_attempt && this.#pause === undefined && this.#hasSockets()) void this.#connect();
  }

  async #connect(): Promise<void> {
    this.#has_attempt = true;
    try {
      const token = await this.#getToken();
      if (this.#isClosed()) return;
      const protocols = [SUBPROTOCOL, ...(token === undefined ? [] : [`bearer.${token}`])];
      const address = `${this.#url.replace(/^http/, 'ws')}/watch`;
      const socket = this.#options.openSocket?.(address, protocols) ?? new WebSocket(address, protocols);
      this.#socket = new WatchSocket(socket, this.#timing, {
        onOpen: () => {
          callBack(() => this.#options.onConnection?.(true));
          this.#endPauses();
        },
        onBody: (stream, body) => this.#deliver(stream, body),
        onRefused: (stream, error, retry_after_ms) => this.#onRefused(stream, error, retry_after_ms),
        onEnd: (end) => this.#onSocketEnd(end),
      });
    } catch {
      // There is no token, which was reported, or a socket cannot send it, which polls will report.
      this.#onSocketEnd({ code: CLOSE.lost, was_open: false, was_useful: false, retry_after_ms: 0 });
    }
  }

  /** Notes the end of a socket, and opens another one after a pause. Polls until then if several sockets have failed. */
  #onSocketEnd({ code, was_open, was_useful, retry_after_ms }: SocketEnd): void {
    this.#socket = undefined;
    this.#has_attempt = false;
    if (was_open && !this.#isClosed()) callBack(() => this.#options.onConnection?.(false));
    // The callback may have closed the client.
    if (this.#isClosed()) return;
    if (was_useful) this.#failures = 0;
    else if (retry_after_ms > 0) this.#failures = ATTEMPTS_MAX;
    // While the client polls, the polls find out whether the token is refused.
    const may_be_for_token = !was_open && this.#failures < ATTEMPTS_MAX;
    if (code === CLOSE.unauthorized || may_be_for_token) this.#token = undefined;
    this.#pause = startPause({ min_ms: retry_after_ms, failures: this.#failures }, this.#timing, () => {
      this.#pause = undefined;
      this.#arrange();
    });
    this.#failures += 1;
    this.#arrange();
  }

  #onRefused(stream: Stream, error: Refusal, retry_after_ms: number | undefined): void {
    if (isForToken(error) && this.#mayRenew(stream)) {
      stream.has_new_token = true;
      this.#socket?.end(CLOSE.unauthorized);
    } else if (error.code === 'WATCH_BAD_FRAME') stream.must_poll = true;
    // A failure of the service (ERROR) has no time to retry after.
    else if (retry_after_ms !== undefined || error.code === 'ERROR') this.#delay(stream, retry_after_ms, error);
    else this.#refuse(stream, error);
    this.#arrange();
  }

  /** Polls once for changes that the stream has not seen; `#arrange` decides what follows. */
  async #poll(stream: Stream): Promise<void> {
    const own = new AbortController();
    stream.poll_in_progress = own;
    const late = setTimeout(() => own.abort(), this.#timing.poll_within_ms);
    const token = this.#getToken();
    const answer = await token
      .then((bearer) => poll(this.#url, stream, bearer, own.signal))
      // The service cannot be reached, or there is no token.
      .catch((): Answer => ({ kind: 'temporary_failure', retry_after_ms: 0 }));
    clearTimeout(late);
    // Meanwhile the stream was subscribed on the socket, or has ended.
    if (stream.poll_in_progress !== own) return;
    stream.poll_in_progress = undefined;
    switch (answer.kind) {
      case 'body':
        this.#deliver(stream, answer.body);
        break;
      case 'temporary_failure':
        this.#delay(stream, answer.retry_after_ms, answer.error);
        break;
      case 'refusal':
        if (!answer.is_for_token || !this.#mayRenew(stream)) {
          this.#refuse(stream, answer.error);
          break;
        }
        stream.has_new_token = true;
        // Another stream may have requested a new token already.
        if (this.#token === token) this.#token = undefined;
    }
    this.#arrange();
  }

  #deliver(stream: Stream, body: Watched): void {
    deliver(stream, body);
    for (const merged of this.#streams.merge(stream.path)) this.#remove(merged);
  }

  #refuse(stream: Stream, error: Refusal): void {
    this.#remove(stream);
    notify(stream, ({ onError }) => onError(error));
  }

  /** Tries again after a pause, for a reason if the service gave one. */
  #delay(stream: Stream, min_ms = 0, error?: Refusal): void {
    stream.pause = startPause({ min_ms, failures: stream.failures }, this.#timing, () => {
      stream.pause = undefined;
      this.#arrange();
    });
    stream.failures += 1;
    if (error) notify(stream, ({ onDelayed }) => onDelayed(error));
  }

  #remove(stream: Stream): void {
    this.#socket?.unsubscribe(stream);
    this.#streams.remove(stream);
  }

  /** Ends all pauses except those that the service asked for. */
  #endPauses(): void {
    for (const stream of this.#streams.all()) stream.pause = endPause(stream.pause);
    this.#pause = endPause(this.#pause);
    this.#arrange();
  }

  /** Pings the socket and restarts the polls, because connections may have died while the page slept. */
  readonly #wake = ({ type }: Event): void => {
    if (type === 'visibilitychange' && globalThis.document?.visibilityState === 'hidden') return;
    this.#socket?.ping();
    for (const stream of this.#streams.all()) endPoll(stream);
    this.#endPauses();
  };

  #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Whether to request a new token after one was refused. A new one that is refused, too, is not the reason. */
  #mayRenew({ has_new_token }: Stream): boolean {
    return typeof this.#options.token === 'function' && !has_new_token;
  }

  /** Node has no WebSocket before version 22. */
  #hasSockets(): boolean {
    return this.#options.openSocket !== undefined || typeof WebSocket !== 'undefined';
  }

  #getToken(): Promise<string | undefined> {
    const { token } = this.#options;
    if (this.#token) return this.#token;
    // A token from a file may end with a line break, which no header can have.
    const requested = (async () => (typeof token === 'function' ? await token() : token)?.trim())();
    const limited = within(requested, {
      what: 'The token',
      limit_ms: this.#timing.poll_within_ms,
      signal: this.#closed.signal,
    });
    this.#token = limited;
    // Current callers get the failure; the next call requests a token again.
    limited.then(
      () => {
        this.#is_without_token = false;
      },
      (error: unknown) => {
        if (this.#token === limited) this.#token = undefined;
        if (!this.#is_without_token && !this.#isClosed()) console.error('watch: no token; trying again:', error);
        this.#is_without_token = true;
      },
    );
    return limited;
  }
}

/** In a page, an address may also be empty or a path: then the service is at the page's own host. */
function isAddress(url: string): boolean {
  const is_of_page = /^(\/|$)/.test(url);
  try {
    return /^https?:$/.test(new URL(url, is_of_page ? globalThis.location?.href : undefined).protocol);
  } catch {
    return false;
  }
}

function report({ code, message }: Refusal): void {
  console.error(`watch: ${code}: ${message}`);
}
