import type { Socket, SocketHandler } from 'bun';
import type { KeyPair } from '../../../platform/http/ports/tls-port.ts';
import type { ClientTraffic } from '../traffic.ts';
import { Direction } from './direction.ts';

/** How long a server may take to accept a connection. */
const CONNECT_WITHIN_MS = 10_000;
/** How long the TLS handshake may take. */
const HANDSHAKE_WITHIN_MS = 10_000;
/** How long both sides may be silent, and how long once one side has sent everything. */
export const SILENCE = { max_ms: 10 * 60_000, half_closed_max_ms: 60_000 };
const KEEP_ALIVE_AFTER_MS = 60_000;

interface ConnectionOptions {
  target: Endpoint;
  /** What the server gets before the client's bytes. */
  header: Buffer | undefined;
  traffic: ClientTraffic;
  /** Called once, when both sides are closed. */
  onEnd(): void;
}

/** A host and port. */
export interface Endpoint {
  hostname: string;
  port: number;
}

/** A client's connection and the one to the server. The end or loss of one side is passed on to the other. */
export class Connection {
  readonly #options: ConnectionOptions;
  #client: Socket<unknown>;
  #server: Socket<unknown> | undefined;
  #timer: Timer | undefined;
  #is_client_closed = false;
  #is_server_closed = false;
  #to_server: Direction;
  #to_client: Direction | undefined;
  #is_over = false;
  #active_at = performance.now();

  constructor(client: Socket<unknown>, options: ConnectionOptions) {
    this.#client = client;
    this.#options = options;
    this.#to_server = new Direction(client);
    client.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
    client.setNoDelay(true);
  }

  /** Begins TLS, and connects to the server after the handshake. Cuts the connection if TLS cannot begin. */
  startTls(key_pair: KeyPair): void {
    this.#within(HANDSHAKE_WITHIN_MS);
    try {
      this.#client = this.#upgrade(key_pair);
      this.#to_server = new Direction(this.#client);
    } catch {
      this.cut();
    }
  }

  #upgrade({ certificate: cert, key }: KeyPair): Socket<undefined> {
    const socket: SocketHandler<undefined> = {
      ...this.#clientHandlers(),
      handshake: (_, is_done) => {
        clearTimeout(this.#timer);
        if (is_done) void this.connect();
        else this.cut();
      },
    };
    // The types lack `isServer`.
    const options = { tls: { cert, key }, isServer: true, data: undefined, socket };
    const [, client] = this.#client.upgradeTLS(options);
    return client;
  }

  /** Connects to the server. */
  async connect(): Promise<void> {
    this.#within(CONNECT_WITHIN_MS);
    const { hostname, port } = this.#options.target;
    try {
      const handlers = this.#serverHandlers();
      const server = await Bun.connect({ hostname, port, allowHalfOpen: true, data: undefined, socket: handlers });
      if (this.#is_over) server.terminate();
    } catch {
      this.cut();
    }
  }

  receive(bytes: Buffer): void {
    if (this.#options.traffic.countReceived(bytes.length)) this.#pass(this.#to_server, bytes);
    else this.cut();
  }

  drainClient(): void {
    this.#active_at = performance.now();
    this.#to_client?.drain();
    this.#closeIfDone();
  }

  endClient(): void {
    this.#to_server.end();
    this.#closeIfDone();
  }

  closeClient(): void {
    this.#is_client_closed = true;
    this.endClient();
  }

  /** Closes both sides at once, and drops what they have not received. */
  cut(): void {
    this.#finish((socket) => socket.terminate());
  }

  /** Closes a connection that has been silent for too long. */
  closeIfSilent(now: number, silence: typeof SILENCE): void {
    const is_half_closed = this.#to_server.is_done || this.#to_client?.is_done;
    const max_ms = is_half_closed ? silence.half_closed_max_ms : silence.max_ms;
    if (now - this.#active_at > max_ms) this.cut();
  }

  #clientHandlers() {
    return {
      data: (_: unknown, bytes: Buffer) => this.receive(bytes),
      drain: () => this.drainClient(),
      end: () => this.endClient(),
      close: () => this.closeClient(),
      error: () => this.cut(),
    };
  }

  #serverHandlers(): SocketHandler<undefined> {
    const end = () => {
      this.#to_client?.end();
      this.#closeIfDone();
    };
    return {
      open: (server) => this.#attach(server),
      data: (_, bytes) => this.#answer(bytes),
      drain: () => {
        this.#active_at = performance.now();
        this.#to_server.drain();
        this.#closeIfDone();
      },
      end,
      close: () => {
        this.#is_server_closed = true;
        end();
      },
      error: () => this.cut(),
      connectError: () => this.cut(),
    };
  }

  #answer(bytes: Buffer): void {
    if (!this.#to_client) return;
    if (this.#options.traffic.countSent(bytes.length)) this.#pass(this.#to_client, bytes);
    else this.cut();
  }

  #attach(server: Socket<undefined>): void {
    clearTimeout(this.#timer);
    if (this.#is_over) return void server.terminate();
    this.#server = server;
    server.setNoDelay(true);
    server.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
    this.#to_client = new Direction(server);
    this.#to_client.attach(this.#client);
    this.#to_server.attach(server, this.#options.header);
  }

  #pass(direction: Direction, bytes: Buffer): void {
    this.#active_at = performance.now();
    if (!direction.pass(bytes)) this.cut();
  }

  /** Closes both sides once nothing is left to pass on. */
  #closeIfDone(): void {
    const is_sent = this.#to_server.is_done;
    const is_answered = this.#to_client?.is_done ?? false;
    const is_client_gone = this.#is_client_closed && (is_sent || !this.#server);
    const is_server_gone = this.#is_server_closed && is_answered;
    if ((is_sent && is_answered) || is_client_gone || is_server_gone) this.#finish((socket) => socket.end());
  }

  #finish(close: (socket: Socket<unknown>) => void): void {
    if (this.#is_over) return;
    this.#is_over = true;
    clearTimeout(this.#timer);
    close(this.#client);
    if (this.#server) close(this.#server);
    this.#options.onEnd();
  }

  #within(max_ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.cut(), max_ms);
  }
}
