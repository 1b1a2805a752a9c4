import type { Static, TSchema } from '@sinclair/typebox';
import type { ServerWebSocket } from 'bun';
import { type Call, type End, readFromPod, readShape, type Sizes } from './pod-messages.ts';

/** Time for the first process of a pod to answer a call. Pods that answer slowly hold up the readings of others. */
const CALL_TIMEOUT_MS = 2_000;
/** Killing waits for the end of all processes. */
const KILL_TIMEOUT_MS = 15_000;
const MESSAGES_PER_SECOND_MAX = 500;
/** Longest message that is not the answer to a call. */
const STATE_CHARACTERS_MAX = 4_096;
/** How the first process begins an answer. */
const ANSWER = '{"answer":';
/** Calls to one pod that wait for an answer. */
const CALLS_MAX = 64;

interface PendingCall {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

const timeoutOf = (call: Call): number => (call.do === 'kill' ? KILL_TIMEOUT_MS : CALL_TIMEOUT_MS);

/** The first process of a pod has no connection, lost it, or did not answer as it should. */
export class PodUnreachable extends Error {}

/** The connection of a pod's first process. */
export class PodConnection {
  /** How much output there is, as it was last reported. */
  sizes: Sizes = { std_out: 0, std_err: 0 };
  /** How the program ended; undefined while it runs. */
  end: End | undefined;
  /** Whether the pod took too long, or sent what the first process does not send. Then this connection is closed. */
  has_failed = false;
  #is_closed = false;
  readonly #pending_calls = new Map<number, PendingCall>();
  #calls = 0;
  #second = 0;
  #received = 0;

  constructor(private readonly socket: Pick<ServerWebSocket<unknown>, 'send' | 'close'>) {}

  /** Calls the first process. Throws PodUnreachable if its connection is lost, or if it does not answer as it should. */
  async call<Shape extends TSchema>(shape: Shape, call: Call): Promise<Static<Shape>> {
    if (this.has_failed || this.#is_closed || this.#pending_calls.size >= CALLS_MAX)
      throw new PodUnreachable('the pod does not answer');
    this.#calls += 1;
    const id = this.#calls;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending_calls.set(id, { resolve, reject });
    const timer = setTimeout(() => {
      // A stuck pod must not delay every later call.
      this.fail();
      reject(new PodUnreachable('the pod took too long to answer'));
    }, timeoutOf(call));
    try {
      this.socket.send(JSON.stringify({ ...call, call: id }));
      const result = readShape(shape, await promise);
      if (result !== undefined) return result;
      this.fail();
      throw new PodUnreachable('the pod gave an unknown answer');
    } finally {
      clearTimeout(timer);
      this.#pending_calls.delete(id);
    }
  }

  /** Takes a message. Returns whether the state of the server has changed. Throws an error for an invalid message. */
  receive(text: string): boolean {
    if (this.has_failed) return false;
    this.#count(text);
    const message = readFromPod(text);
    if ('answer' in message) {
      const pending = this.#pending_calls.get(message.answer);
      if (!pending) throw new Error('the pod answers without a call');
      this.#pending_calls.delete(message.answer);
      pending.resolve(message.result);
      return false;
    }
    const had_ended = this.end !== undefined;
    this.sizes = message.state.sizes;
    this.end = message.state.end;
    return !had_ended && this.end !== undefined;
  }

  /**
   * Throws an error for more messages than Muster's first process sends. A hostile server can send in the name of its
   * pod.
   */
  #count(text: string): void {
    const second = Math.floor(performance.now() / 1_000);
    this.#received = second === this.#second ? this.#received + 1 : 1;
    this.#second = second;
    const is_flood = this.#received > MESSAGES_PER_SECOND_MAX;
    // An answer is as long as its call allows, and each call has one.
    const is_too_long = text.length > STATE_CHARACTERS_MAX && !text.startsWith(ANSWER);
    if (is_flood || is_too_long) throw new Error('the pod sends too much');
  }

  /** Ends the calls that wait, because the connection is closed. */
  rejectCalls(): void {
    this.#is_closed = true;
    for (const { reject } of this.#pending_calls.values()) reject(new PodUnreachable('the pod lost its connection'));
  }

  /** Closes the connection of a pod that does not keep to the rules. */
  fail(): void {
    this.has_failed = true;
    this.close();
  }

  close(): void {
    this.socket.close();
  }
}
