import type { ServerWebSocket } from 'bun';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { errorBody, toCallersError } from '../http/answers.ts';
import type { Caller } from '../tokens/caller.ts';
import { nameCaller } from '../tokens/caller.ts';
import type { View } from '../watch/views.ts';
import type { Admittance, Admitted } from './admittance.ts';
import { CLOSE, frames, parseFrame, readFrame, readId, type SubscribeFrame } from './frames.ts';
import type { Groups, Member } from './groups.ts';

export const SUBSCRIPTIONS_MAX = 256;
/** A client may send so many frames at once, and so many more each second. */
const FRAMES_AT_ONCE_MAX = 300;
const FRAMES_PER_SECOND = 50;
/** How long a socket may stay without a token and without anything it watches. */
const AUTHENTICATE_WITHIN_MS = 5_000;
/** How long a client may leave unread what was sent to it. */
const UNREAD_MAX_MS = 30_000;

export type Socket = ServerWebSocket<Session>;

/** Who a token says he is, and until when. */
export interface Bearer {
  caller: Caller;
  /** Milliseconds since 1970. */
  expires_at: number;
}

export interface SessionDependencies {
  clock: Clock;
  groups: Groups;
  admittance: Admittance;
  public_url: string;
  /** Counts the socket among those of its caller, or of an address while nobody knows who it is. Throws TOO_MANY_SOCKETS. */
  takeSlot(caller: Caller | undefined, address: string): () => void;
  onEnd(session: Session, duration_ms: number): void;
}

/** What is known of a socket when it is opened. */
export interface Opening {
  origin: string | null;
  address: string;
  bearer: Bearer | undefined;
  /** Gives back its place among the sockets of its caller. */
  leave(): void;
}

interface Subscription {
  sight_name?: string;
  leave?: () => void;
  catchUp?: () => void;
  pause?: () => void;
  is_over: boolean;
}

/** One socket: what its client says, and what it watches. Its methods are what Bun calls. */
export class Session {
  readonly #dependencies: SessionDependencies;
  readonly #opening: Opening;
  readonly #subscriptions = new Map<string, Subscription>();
  #socket: Socket | undefined;
  #bearer: Bearer | undefined;
  /** While a token is looked at. */
  #authenticating: Promise<void> | undefined;
  #leave: () => void;
  #opened_at = 0;
  #frames_left = FRAMES_AT_ONCE_MAX;
  #frames_counted_at = 0;
  #unread_since: number | undefined;
  /** Some things can be watched without a token. */
  #was_admitted = false;

  constructor(dependencies: SessionDependencies, opening: Opening) {
    this.#dependencies = dependencies;
    this.#opening = opening;
    this.#bearer = opening.bearer;
    this.#leave = opening.leave;
  }

  open(socket: Socket): void {
    this.#socket = socket;
    this.#opened_at = performance.now();
    this.#frames_counted_at = this.#opened_at;
    if (this.#bearer) this.#send(frames.ready(SUBSCRIPTIONS_MAX));
  }

  message(data: string | Uint8Array): void {
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
          this.#authenticating = this.#authenticate(frame.token);
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
      // Without the id of a subscription that there is: it goes on.
      this.#refuse(error, id !== undefined && this.#subscriptions.has(id) ? undefined : id);
    }
  }

  /** Everything that was sent is on its way: what is new since can follow. */
  drain(): void {
    this.#unread_since = undefined;
    for (const { catchUp } of this.#subscriptions.values()) catchUp?.();
  }

  close(): void {
    this.#socket = undefined;
    for (const id of [...this.#subscriptions.keys()]) this.#end(id);
    this.#leave();
    this.#dependencies.onEnd(this, Math.round(performance.now() - this.#opened_at));
  }

  /** Closes what has no right to be open any more, or is not read. Called every second. */
  check(): void {
    const now = performance.now();
    if (!this.#bearer) {
      const is_late = now - this.#opened_at > AUTHENTICATE_WITHIN_MS;
      if (is_late && !this.#was_admitted) this.#refuseAll(new ServiceError('API_UNAUTHORIZED', {}));
    } else if (this.#dependencies.clock.now().getTime() > this.#bearer.expires_at) {
      this.#refuseAll(new ServiceError('CLAIMS_ENTITLEMENT_EXPIRED', {}));
    }
    // Also when there is nothing more for him: what he was sent takes up memory.
    if ((this.#socket?.getBufferedAmount() ?? 0) > 0) this.#noteUnread();
    if (this.#unread_since !== undefined && now - this.#unread_since > UNREAD_MAX_MS) {
      this.stop(CLOSE.too_slow, 'what was sent is not read');
    }
  }

  stop(code: number, reason: string): void {
    this.#socket?.close(code, reason);
  }

  #become(bearer: Bearer): void {
    const known = this.#bearer?.caller;
    // What is watched was admitted for him; another has another socket.
    if (known && nameCaller(known) !== nameCaller(bearer.caller)) {
      throw new ServiceError('WATCH_BAD_FRAME', {
        error: 'the token belongs to another caller; open another socket for it',
      });
    }
    if (!known) {
      const leave = this.#dependencies.takeSlot(bearer.caller, this.#opening.address);
      this.#leave();
      this.#leave = leave;
    }
    this.#bearer = bearer;
    this.#send(frames.ready(SUBSCRIPTIONS_MAX));
  }

  async #authenticate(token: string): Promise<void> {
    try {
      const bearer = await this.#dependencies.admittance.read(token);
      if (this.#socket) this.#become(bearer);
    } catch (error) {
      this.#refuseAll(error);
    }
  }

  async #subscribe({ id, path, watch_index }: SubscribeFrame): Promise<void> {
    if (this.#subscriptions.has(id)) {
      // Without the id: the subscription that has it goes on.
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
      const { admittance, groups } = this.#dependencies;
      const { origin, address } = this.#opening;
      // A client need not wait until it is known before it goes on.
      await this.#authenticating;
      if (subscription.is_over) return;
      const asking = { caller: this.#bearer?.caller, origin, address, path, watch_index };
      const admitted = await admittance.admit(asking, {
        onDoubted: () => subscription.pause?.(),
        onRefused: fail,
        onAdmitted: () => subscription.catchUp?.(),
      });
      if (subscription.is_over) return admitted.leave();
      this.#was_admitted = true;
      this.#assertNew(admitted.sight, admitted.leave);
      subscription.sight_name = admitted.sight.name;
      const member = this.#memberAt(admitted, fail);
      const { key, catchUp, pause, leave } = groups.join(admitted.sight, member);
      subscription.catchUp = catchUp;
      subscription.pause = pause;
      subscription.leave = () => {
        leave();
        admitted.leave();
      };
      this.#send(frames.subscribed(id, key));
      catchUp();
    } catch (error) {
      fail(error);
    }
  }

  /** Two would share their bodies, and neither would know which are his. */
  #assertNew({ name }: View, leave: () => void): void {
    for (const [id, { sight_name }] of this.#subscriptions) {
      if (sight_name !== name) continue;
      leave();
      throw new ServiceError('WATCH_BAD_FRAME', {
        error: `this socket already watches that path under the id "${id}"`,
      });
    }
  }

  #memberAt({ number, isDoubtful }: Admitted, fail: (error: unknown) => void): Member {
    return {
      number,
      isBusy: () => isDoubtful() || ((this.#socket?.getBufferedAmount() ?? 1) > 0 && this.#noteUnread()),
      send: (frame) => this.#send(frame),
      follow: (topic, is_following) => {
        if (is_following) this.#socket?.subscribe(topic);
        else this.#socket?.unsubscribe(topic);
      },
      fail,
    };
  }

  #noteUnread(): boolean {
    this.#unread_since ??= performance.now();
    return true;
  }

  #end(id: string): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return;
    subscription.is_over = true;
    this.#subscriptions.delete(id);
    subscription.leave?.();
  }

  #countFrame(): void {
    const now = performance.now();
    const earned = ((now - this.#frames_counted_at) / 1_000) * FRAMES_PER_SECOND;
    this.#frames_left = Math.min(FRAMES_AT_ONCE_MAX, this.#frames_left + earned) - 1;
    this.#frames_counted_at = now;
    if (this.#frames_left >= 0) return;
    throw new ServiceError('WATCH_TOO_MANY_FRAMES', { limit: FRAMES_PER_SECOND }, { retry_after_ms: 1_000 });
  }

  #refuse(failure: unknown, id: string | undefined): void {
    const error = toCallersError(failure);
    const body = errorBody(error, Bun.randomUUIDv7(), this.#dependencies.public_url);
    this.#send(frames.error(body, id, error.retry_after_ms));
    if (error.code === 'WATCH_TOO_MANY_FRAMES') this.stop(CLOSE.too_many, error.code);
  }

  /** Ends everything that is watched, and the socket. */
  #refuseAll(error: unknown): void {
    const ids = [...this.#subscriptions.keys()];
    for (const id of ids) this.#end(id);
    for (const id of ids.length > 0 ? ids : [undefined]) this.#refuse(error, id);
    const { code, status } = toCallersError(error);
    this.stop(status === 429 ? CLOSE.too_many : CLOSE.unauthorized, code);
  }

  #send(frame: string): void {
    // Not sent at once is kept by Bun and sent when there is room; `isBusy` sees it.
    this.#socket?.send(frame);
  }
}
