import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../platform/errors.ts';
import { countingKeyOf } from '../../platform/networks.ts';
import { MINUTE_MS } from '../../platform/units.ts';
import type { TrafficCounts } from './tables.ts';
import { answerClassOf, noTraffic } from './traffic-counts.ts';

const SERVERS_MAX = 10_000;
/** Addresses of a server whose bytes are remembered. */
const NETWORKS_MAX = 10_000;

/** Bytes of both directions in a minute: of a server with all players, and with one address. */
export interface ByteLimits {
  of_server: number;
  of_address: number;
}

export interface TrafficOptions {
  limits: { is_on: boolean; scale: number };
  bytes_a_minute: ByteLimits;
}

export type Traffic = ReturnType<typeof createTraffic>;

/** Creates the counts and limits of what players and servers exchange through this process. */
export function createTraffic({ limits: { is_on, scale }, bytes_a_minute }: TrafficOptions) {
  const factor = is_on ? 1 : Number.POSITIVE_INFINITY;
  const limits = {
    of_server: bytes_a_minute.of_server * factor,
    of_address: bytes_a_minute.of_address * scale * factor,
  };
  const servers = new LRUCache<string, ServerTraffic>({ max: SERVERS_MAX });
  const counts = new Map<string, TrafficCounts>();
  const countsOf = (server_id: string): TrafficCounts => {
    const known = counts.get(server_id);
    if (known) return known;
    const created = noTraffic();
    counts.set(server_id, created);
    return created;
  };

  return {
    ofServer(server_id: string): ServerTraffic {
      const known = servers.get(server_id) ?? new ServerTraffic(limits, () => countsOf(server_id));
      servers.set(server_id, known);
      return known;
    },
    /** Returns what was counted since the last call, by server. */
    take(): Map<string, TrafficCounts> {
      const taken = new Map(counts);
      counts.clear();
      return taken;
    },
  };
}

/** What passes between players and one server. */
export class ServerTraffic {
  // With `max`, the cache would allocate space for all networks, and there is one for each server.
  readonly #of_networks = new LRUCache<string, ByteWindow>({ maxSize: NETWORKS_MAX, sizeCalculation: () => 1 });
  readonly #limits: ByteLimits;
  readonly #readCounts: () => TrafficCounts;
  readonly #all: ByteWindow;

  constructor(limits: ByteLimits, readCounts: () => TrafficCounts) {
    this.#limits = limits;
    this.#readCounts = readCounts;
    this.#all = new ByteWindow(limits.of_server);
  }

  get counts(): TrafficCounts {
    return this.#readCounts();
  }

  /** Returns the count of one client. */
  ofClient(address: string): ClientTraffic {
    const network = countingKeyOf(address);
    const window = this.#of_networks.get(network) ?? new ByteWindow(this.#limits.of_address);
    this.#of_networks.set(network, window);
    return new ClientTraffic(this, [this.#all, window]);
  }
}

/** What passes between one client and a server. */
export class ClientTraffic {
  readonly #server: ServerTraffic;
  readonly #windows: ByteWindow[];

  constructor(server: ServerTraffic, windows: ByteWindow[]) {
    this.#server = server;
    this.#windows = windows;
  }

  /** Whether the server or the address has had too many bytes in this minute. */
  get is_over_limit(): boolean {
    return this.#windows.some((window) => window.is_over_limit);
  }

  /** Counts bytes from the client. Returns false if they are too many. */
  countReceived(bytes: number): boolean {
    this.#server.counts.received_bytes += bytes;
    return this.#add(bytes);
  }

  /** Counts bytes to the client. Returns false if they are too many. */
  countSent(bytes: number): boolean {
    this.#server.counts.sent_bytes += bytes;
    return this.#add(bytes);
  }

  /** Counts a request, and how long its answer took to begin. */
  countAnswer(after_ms: number): void {
    const { counts } = this.#server;
    counts.requests += 1;
    const of_class = answerClassOf(after_ms);
    counts.answers[of_class] = (counts.answers[of_class] ?? 0) + 1;
  }

  /** Counts a connection that stays open, until the returned function is called once. */
  countOpened(kind: 'sockets' | 'connections'): () => void {
    this.#server.counts[kind] += 1;
    this.#server.counts.open += 1;
    return () => {
      this.#server.counts.open -= 1;
    };
  }

  #add(bytes: number): boolean {
    let is_within = true;
    for (const window of this.#windows) is_within = window.add(bytes) && is_within;
    return is_within;
  }
}

/** The error of a request whose server or address has had too many bytes in this minute. */
export function tooManyBytes(): ServiceError {
  return new ServiceError('GATEWAY_TOO_MANY_BYTES', {}, { retry_after_ms: MINUTE_MS });
}

/** The bytes of the current minute. */
class ByteWindow {
  readonly #max: number;
  #ends_at = 0;
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get is_over_limit(): boolean {
    return performance.now() < this.#ends_at && this.#bytes > this.#max;
  }

  /** Returns whether all bytes of the minute are within the limit. */
  add(bytes: number): boolean {
    const now = performance.now();
    if (now >= this.#ends_at) {
      this.#ends_at = now + MINUTE_MS;
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    return this.#bytes <= this.#max;
  }
}
