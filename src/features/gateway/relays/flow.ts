import type { udp } from 'bun';
import type { ClientTraffic } from '../traffic.ts';
import type { Endpoint } from './connection.ts';

/** Packets that are kept until the socket to the server is open. */
const EARLY_PACKETS_MAX = 8;
/**
 * How many times the bytes of its own packets a client may get. The sender of a packet may be forged, and the relay
 * must not turn few bytes of an attacker into many for the forged address. A client is proven by packets that follow
 * answers; an attacker who does not see the answers can imitate that, so a proven client has a limit as well.
 */
const RATIO = { unproven: 3, proven: 64 };
/** Packets that must each follow an answer to prove a client. */
const PROOF_PACKETS = 4;
/** Bytes of Ethernet, IPv4 and UDP around a packet, and the bytes of the shortest one. */
const WIRE = { overhead_bytes: 66, packet_min_bytes: 84 };

interface FlowOptions {
  target: Endpoint;
  traffic: ClientTraffic;
  /** Sends to the client. */
  answer(bytes: Buffer): void;
  /** Called once. */
  onEnd(): void;
}

/** The packets between one client and the server. Those above the limits of bytes are dropped. */
export class Flow {
  readonly #options: FlowOptions;
  #socket: udp.ConnectedSocket<'buffer'> | undefined;
  #early: Buffer[] = [];
  /** Whether the client has been sent a packet since its last one. */
  #has_answered = false;
  #packets_after_answers = 0;
  /** Bytes on the wire. */
  #received_bytes = 0;
  #answered_bytes = 0;
  #is_over = false;
  /** When the client sent its last packet, in the time of `performance.now()`; 0 before the first. */
  received_at = 0;
  received_packets = 0;

  constructor(options: FlowOptions) {
    this.#options = options;
  }

  /** Opens the socket to the server. Ends the flow if that fails. */
  async open(): Promise<void> {
    try {
      const handlers: udp.ConnectedSocketHandler<'buffer'> = {
        data: (_, bytes) => this.#pass(bytes),
        // The server does not listen yet, or no longer.
        error() {},
      };
      const socket = await Bun.udpSocket({ connect: this.#options.target, socket: handlers });
      if (this.#is_over) return socket.close();
      this.#socket = socket;
      for (const bytes of this.#early) send(socket, bytes);
      this.#early = [];
    } catch {
      // No descriptor is left. The client's next packet begins another flow.
      this.close();
    }
  }

  /** Passes a packet of the client on. */
  receive(bytes: Buffer): void {
    if (this.#has_answered) this.#packets_after_answers += 1;
    this.#has_answered = false;
    this.#received_bytes += wireBytesOf(bytes);
    this.received_at = performance.now();
    this.received_packets += 1;
    if (!this.#options.traffic.countReceived(bytes.length)) return;
    if (this.#socket) send(this.#socket, bytes);
    // Bun reuses its buffer.
    else if (this.#early.length < EARLY_PACKETS_MAX) this.#early.push(Buffer.from(bytes));
  }

  close(): void {
    if (this.#is_over) return;
    this.#is_over = true;
    this.#socket?.close();
    this.#options.onEnd();
  }

  #pass(bytes: Buffer): void {
    const ratio = this.#packets_after_answers >= PROOF_PACKETS ? RATIO.proven : RATIO.unproven;
    const answered_bytes = this.#answered_bytes + wireBytesOf(bytes);
    if (answered_bytes > ratio * this.#received_bytes || !this.#options.traffic.countSent(bytes.length)) return;
    this.#answered_bytes = answered_bytes;
    this.#has_answered = true;
    this.#options.answer(bytes);
  }
}

/** Returns the bytes that a packet takes on the wire. */
function wireBytesOf({ length }: Buffer): number {
  return Math.max(WIRE.packet_min_bytes, length + WIRE.overhead_bytes);
}

/** Sends to the server. A packet that the kernel refuses is lost. */
function send(socket: udp.ConnectedSocket<'buffer'>, bytes: Buffer): void {
  try {
    socket.send(bytes);
  } catch {
    // The server has refused an earlier packet.
  }
}
