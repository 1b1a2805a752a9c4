import { type Call, readToPod, type ServerOrder } from '../pod-messages.ts';

const RECONNECT_FIRST_MS = 100;
/** Short, because several processes may share a cluster, and only the one that has the pods accepts. */
const RECONNECT_MAX_MS = 2_000;
/** Packets to a process that cannot be reached may be dropped without an error. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How often the other end is pinged, and how long it may stay silent. A paused process does not answer. */
const PING_EVERY_MS = 5_000;
const SILENT_MAX_MS = 15_000;

interface ConnectionOptions {
  order: Pick<ServerOrder, 'url' | 'token'>;
  /** Performs a call of the holder. */
  perform(call: Call): Promise<unknown>;
  /** Returns the state, which is sent after each change. */
  readState(): object;
}

/** The calls of Bun's WebSocket that the standard does not have. */
type PingingSocket = WebSocket & Record<'ping' | 'terminate', () => void>;

/**
 * The connection of a pod to the process that has it. Reconnects after that process restarts, or another takes over.
 */
export class HolderConnection {
  #socket: WebSocket | undefined;
  #sent = '';

  constructor(private readonly options: ConnectionOptions) {}

  /** Connects, and again whenever the connection ends. Never resolves: the process ends. */
  async keepOpen(): Promise<never> {
    for (let failures = 0; ; failures += 1) {
      if (await this.#connect()) failures = 0;
      const pause_ms = Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** failures);
      await Bun.sleep(pause_ms * (0.5 + Math.random() / 2));
    }
  }

  /** Sends the state unless the holder has it. */
  sendState(): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const state = JSON.stringify({ state: this.options.readState() });
    if (state !== this.#sent) this.#socket.send(state);
    this.#sent = state;
  }

  /** Connects, and waits until the connection has ended. Returns whether it was ever open. */
  async #connect(): Promise<boolean> {
    const { url, token } = this.options.order;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const options: Bun.WebSocketOptions = { headers: { authorization: `Bearer ${token}` } };
    const socket = new WebSocket(url, options as unknown as string[]) as PingingSocket;
    const timer = setTimeout(() => socket.close(), CONNECT_TIMEOUT_MS);
    let has_opened = false;
    let alive_at = 0;
    let pinging: Timer | undefined;
    const noteAlive = () => {
      alive_at = performance.now();
    };
    this.#sent = '';
    this.#socket = socket;
    socket.onopen = () => {
      clearTimeout(timer);
      has_opened = true;
      noteAlive();
      pinging = setInterval(() => {
        if (performance.now() - alive_at >= SILENT_MAX_MS) socket.terminate();
        else socket.ping();
      }, PING_EVERY_MS);
      this.sendState();
    };
    socket.addEventListener('pong', noteAlive);
    socket.onmessage = ({ data }) => void this.#answer(socket, String(data));
    socket.onerror = () => {};
    socket.onclose = () => resolve(has_opened);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      clearInterval(pinging);
    }
  }

  async #answer(socket: WebSocket, text: string): Promise<void> {
    try {
      const { call, ...rest } = readToPod(text);
      const result = await this.options.perform(rest);
      // The holder knows the end of the program before it knows that it was killed.
      this.sendState();
      socket.send(JSON.stringify({ answer: call, result }));
    } catch (cause) {
      console.error(cause);
      socket.close();
    }
  }
}
