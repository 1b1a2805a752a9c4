import type { ServerWebSocket } from 'bun';
import type { Clock } from '../clock.ts';
import { isFault, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import { errorBody, toCallersError } from '../http/answers.ts';
import type { CountedClient } from '../http/rate-limits.ts';
import { WATCH_PATH } from '../http/upgrades.ts';
import { type Caller, nameCaller } from '../tokens/caller.ts';
import type { Verified } from '../tokens/tokens.ts';
import type { View } from '../watch/views.ts';
import type { Audiences, Member } from './audiences.ts';
import { CLIENT_FRAME_BYTES_MAX, CLOSE, frames, parseFrame, readFrame, readId, type SubscribeFrame } from './frames.ts';
import type { AuthorizedSubscription, SubscriptionAuthorizer } from './subscription-authorizer.ts';

const SUBSCRIPTIONS_MAX = 256;
/** Frames that a client may send at once, and the frames it gains each second. */
const FRAMES_AT_ONCE_MAX = 300;
const FRAMES_PER_SECOND = 50;
/** How long a socket may stay open before its first token or its first authorized subscription. */
const AUTHENTICATE_WITHIN_MS = 5_000;
/** How long a client may leave sent frames unread. */
const UNREAD_MAX_MS = 30_000;

export type Socket = ServerWebSocket<WatchSocket>;

export interface WatchSocketDependencies {
  clock: Clock;
  events: Events;
  audiences: Audiences;
  authorizer: SubscriptionAuthorizer;
  public_url: string;
  /** Counts the socket as its caller's, or as its address's while the caller is unknown. Throws TOO_MANY_SOCKETS. */
  takeSlot(caller: Caller | undefined, client: CountedClient): () => void;
  onEnd(socket: WatchSocket, duration_ms: number): void;
}

/** What is known of a socket when it opens. */
export interface Opening {
  origin: string | null;
  client: CountedClient;
  verified: Verified | undefined;
  /** Frees its slot among the sockets of its caller. */
  freeSlot(): void;
}

interface Subscription {
  is_over: boolean;
  /** Undefined until it is authorized. */
  joined?: { view_name: string; catchUp(): void; pause(): void; leave(): void };
}

/**
 * One socket: the frames of its client, and its subscriptions. Bun calls `open`, `message`, `drain` and `close`
 * (`SocketHandler`); `sockets.ts` calls `check` and `stop`.
 */
export class WatchSocket {
  readonly #dependencies: WatchSocketDependencies;
  readonly #opening: Opening;
  readonly #subscriptions = new Map<string, Subscription>();
  #socket: Socket | undefined;
  #verified: Verified | undefined;
  /** The verification of the newest token, which follows those before it. */
  #authenticating = Promise.resolve();
  /** Whether it is being closed: further frames of the client have no effect. */
  #is_closing = false;
  #freeSlot: () => void;
  #opened_at = 0;
  #frames_left = FRAMES_AT_ONCE_MAX;
  #frames_counted_at = 0;
  #unread_since: number | undefined;
  /** Whether a subscription was authorized: some views need no token. */
  #was_authorized = false;

  constructor(dependencies: WatchSocketDependencies, opening: Opening) {
    this.#dependencies = dependencies;
    this.#opening = opening;
    this.#verified = opening.verified;
    this.#freeSlot = opening.freeSlot;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    this.#opened_at = performance.now();
    this.#frames_counted_at = this.#opened_at;
    if (this.#verified) this.#send(frames.ready(SUBSCRIPTIONS_MAX));
  }

  message(data: string | Uint8Array): void {
    if (this.#is_closing) return;
    if (Buffer.byteLength(data) > CLIENT_FRAME_BYTES_MAX) {
      this.stop(CLOSE.too_long, 'the frame is too long');
      return;
    }
    let parsed: unknown;
    try {
      this.#countFrame();
      parsed = parseFrame(data);
      const frame = readFrame(parsed);
      switch (frame.type) {
        case 'ping':
          this.#send(frames.pong());
          break;
        case 'authenticate':
          this.#authenticating = this.#authenticating.then(() => this.#authenticate(frame.token));
          break;
        case 'unsubscribe':
          this.#end(frame.id);
          this.#send(frames.unsubscribed(frame.id));
          break;
        case 'subscribe':
          void this.#subscribe(frame);
      }
    } catch (error) {
      const id = readId(parsed);
      // An existing subscription with this id goes on, so the error must not carry its id.
      this.#refuse(error, id !== undefined && this.#subscriptions.has(id) ? undefined : id);
    }
  }

  /** Called when some of what was buffered has been sent: subscriptions with nothing left to read can catch up. */
  drain(): void {
    this.#unread_since = undefined;
    for (const { joined } of this.#subscriptions.values()) joined?.catchUp();
  }

  close(): void {
    this.#is_closing = true;
    this.#socket = undefined;
    for (const id of [...this.#subscriptions.keys()]) this.#end(id);
    this.#freeSlot();
    this.#dependencies.onEnd(this, Math.round(performance.now() - this.#opened_at));
  }

  /**
   * Closes the socket if its token is missing or expired, or if its client does not read for long. Its subscriptions wait
   * while the client has anything left to read. Called every second.
   */
  check(): void {
    const now = performance.now();
    if (!this.#verified) {
      const is_late = now - this.#opened_at > AUTHENTICATE_WITHIN_MS;
      if (is_late && !this.#was_authorized) this.#refuseAll(new ServiceError('API_UNAUTHORIZED', {}));
    } else if (this.#dependencies.clock.now().getTime() > this.#verified.accepted_until) {
      this.#refuseAll(new ServiceError('CLAIMS_ENTITLEMENT_EXPIRED', {}));
    }
    // Unread frames take up memory, also when no more are sent.
    if ((this.#socket?.getBufferedAmount() ?? 0) > 0) {
      this.#noteUnread();
      for (const { joined } of this.#subscriptions.values()) joined?.pause();
    }
    if (this.#unread_since !== undefined && now - this.#unread_since > UNREAD_MAX_MS) {
      this.stop(CLOSE.too_slow, 'the client does not read');
    }
  }

  stop(code: number, reason: string): void {
    this.#is_closing = true;
    this.#socket?.close(code, reason);
  }

  #setVerified(verified: Verified): void {
    const known = this.#verified?.caller;
    // The subscriptions were authorized for the known caller.
    if (known && nameCaller(known) !== nameCaller(verified.caller)) {
      throw new ServiceError('WATCH_BAD_FRAME', {
        error: 'the token belongs to another caller; open another socket for it',
      });
    }
    if (!known) {
      const freeSlot = this.#dependencies.takeSlot(verified.caller, this.#opening.client);
      this.#freeSlot();
      this.#freeSlot = freeSlot;
    }
    this.#verified = verified;
    this.#send(frames.ready(SUBSCRIPTIONS_MAX));
  }

  async #authenticate(token: string): Promise<void> {
    if (this.#is_closing) return;
    try {
      const verified = await this.#dependencies.authorizer.readToken(token, this.#opening.client);
      if (this.#socket) this.#setVerified(verified);
    } catch (error) {
      this.#refuseAll(error);
    }
  }

  async #subscribe({ id, path, watch_index }: SubscribeFrame): Promise<void> {
    if (this.#subscriptions.has(id)) {
      // The subscription with this id goes on, so the error must not carry its id.
      return this.#refuse(
        new ServiceError('WATCH_BAD_FRAME', { error: `the id "${id}" is already in use` }),
        undefined,
      );
    }
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      return this.#refuse(new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: 1_000 }), id);
    }
    const subscription: Subscription = { is_over: false };
    this.#subscriptions.set(id, subscription);
    const fail = (error: unknown) => {
      if (subscription.is_over) return;
      this.#end(id);
      this.#refuse(error, id);
    };
    try {
      const { authorizer, audiences } = this.#dependencies;
      const { origin, client } = this.#opening;
      // A client may subscribe before its token is verified.
      await this.#authenticating;
      if (subscription.is_over) return;
      const request = { caller: this.#verified?.caller, origin, client, path, watch_index };
      const authorized = await authorizer.authorize(request, {
        onSuspended: () => subscription.joined?.pause(),
        onRevoked: fail,
        onConfirmed: () => subscription.joined?.catchUp(),
      });
      if (subscription.is_over) return authorized.leave();
      this.#was_authorized = true;
      const { view } = authorized;
      const other_id = this.#findWatching(view);
      if (other_id !== undefined) {
        authorized.leave();
        const error = `this socket already watches that path under the id "${other_id}"`;
        throw new ServiceError('WATCH_BAD_FRAME', { error });
      }
      const member = this.#createMember(authorized, fail);
      const { key, catchUp, pause, leave } = audiences.join(view, member);
      subscription.joined = {
        view_name: view.name,
        catchUp,
        pause,
        leave() {
          leave();
          authorized.leave();
        },
      };
      this.#send(frames.subscribed(id, key));
      catchUp();
    } catch (error) {
      fail(error);
    }
  }

  /** Returns the id of the subscription of a view. A second one would receive the same frames, under the same key. */
  #findWatching({ name }: View): string | undefined {
    return [...this.#subscriptions.keys()].find((id) => this.#subscriptions.get(id)?.joined?.view_name === name);
  }

  #createMember({ number, isSuspended }: AuthorizedSubscription, fail: (error: unknown) => void): Member {
    return {
      number,
      isBusy: () => {
        if (isSuspended()) return true;
        const has_unread = (this.#socket?.getBufferedAmount() ?? 1) > 0;
        if (has_unread) this.#noteUnread();
        return has_unread;
      },
      send: (frame) => this.#send(frame),
      follow: (shard_name, is_following) => {
        if (is_following) this.#socket?.subscribe(shard_name);
        else this.#socket?.unsubscribe(shard_name);
      },
      fail,
    };
  }

  #noteUnread(): void {
    this.#unread_since ??= performance.now();
  }

  #end(id: string): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return;
    subscription.is_over = true;
    this.#subscriptions.delete(id);
    subscription.joined?.leave();
  }

  #countFrame(): void {
    const now = performance.now();
    const earned = ((now - this.#frames_counted_at) / 1_000) * FRAMES_PER_SECOND;
    this.#frames_left = Math.min(FRAMES_AT_ONCE_MAX, this.#frames_left + earned) - 1;
    this.#frames_counted_at = now;
    if (this.#frames_left >= 0) return;
    const limits = { at_once: FRAMES_AT_ONCE_MAX, limit: FRAMES_PER_SECOND };
    throw new ServiceError('WATCH_TOO_MANY_FRAMES', limits, { retry_after_ms: 1_000 });
  }

  #refuse(failure: unknown, id: string | undefined): void {
    const { events, public_url } = this.#dependencies;
    const error = toCallersError(failure);
    const ray_id = Bun.randomUUIDv7();
    if (isFault(error))
      events.emit({ event: 'request_failed', ray_id, method: 'GET', route: WATCH_PATH, cause: error.cause });
    const body = errorBody(error, { ray_id, public_url });
    this.#send(frames.error(body, id, error.retry_after_ms));
    if (error.code === 'WATCH_TOO_MANY_FRAMES') this.stop(CLOSE.too_many, error.code);
  }

  /** Ends all subscriptions with the error, and closes the socket. */
  #refuseAll(error: unknown): void {
    const ids = [...this.#subscriptions.keys()];
    for (const id of ids) this.#end(id);
    for (const id of ids.length > 0 ? ids : [undefined]) this.#refuse(error, id);
    const { code, status } = toCallersError(error);
    this.stop(status === 429 ? CLOSE.too_many : CLOSE.unauthorized, code);
  }

  #send(frame: string): void {
    // Bun buffers what cannot be sent at once; `isBusy` reads the buffer's size.
    this.#socket?.send(frame);
  }
}
