import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../platform/errors.ts';
import { readDescriptorsMax } from '../../platform/http/ports/open-connections.ts';
import { Slots } from '../../platform/limits/slots.ts';
import { countingKeyOf } from '../../platform/networks.ts';
import { SECOND_MS } from '../../platform/units.ts';

/** Networks whose new connections of the last second are counted. */
const NETWORKS_MAX = 10_000;
/** When a refused client should try again. */
const RETRY = { retry_after_ms: SECOND_MS };

/** Limits of a server's connections. A school or a tournament shares an address. */
export const CONNECTION_LIMITS: SlotLimits = { open_max: 10_000, open_of_address_max: 256, opened_per_second_max: 50 };

/** The share of this process's descriptors for relays, and as much again for WebSockets. */
const DESCRIPTORS_SHARE = 1 / 4;
/** A connection of a client, and one to the game server. */
const DESCRIPTORS_OF_CONNECTION = 2;

/** Returns the slots of this process for connections to game servers, which games share. */
export const openConnectionSlots = (): Slots =>
  new Slots(Math.floor((readDescriptorsMax() * DESCRIPTORS_SHARE) / DESCRIPTORS_OF_CONNECTION));

export interface SlotLimits {
  /** Open at one time, of all clients. */
  open_max: number;
  /** Open at one time, of one address (IPv6: one /64). */
  open_of_address_max: number;
  /** Opened within a second by one address. */
  opened_per_second_max: number;
}

/** Returns limits whose numbers for an address are multiplied as the settings say. */
export function scaleLimits(limits: SlotLimits, { is_on, scale }: { is_on: boolean; scale: number }): SlotLimits {
  const factor = is_on ? scale : Number.POSITIVE_INFINITY;
  return {
    ...limits,
    open_of_address_max: limits.open_of_address_max * factor,
    opened_per_second_max: limits.opened_per_second_max * factor,
  };
}

/** A server, and the game that its slots belong to. */
export interface CountedServer {
  server_id: string;
  game_id: string;
}

/** Counts the connections or flows of one server. */
export class ServerSlots {
  readonly #limits: SlotLimits;
  readonly #slots: Slots;
  readonly #game_id: string;
  readonly #open = new Map<string, number>();
  // With `max`, the cache would allocate space for all networks, and there is one for each server.
  readonly #opened = new LRUCache<string, { count: number }>({
    maxSize: NETWORKS_MAX,
    sizeCalculation: () => 1,
    ttl: SECOND_MS,
  });
  #total = 0;
  #taken_at = performance.now();

  constructor(limits: SlotLimits, slots: Slots, game_id: string) {
    this.#limits = limits;
    this.#slots = slots;
    this.#game_id = game_id;
  }

  /** Returns whether nothing is open, and nothing was opened within a second. */
  isUnused(now: number): boolean {
    return this.#total === 0 && now - this.#taken_at > SECOND_MS;
  }

  /**
   * Takes a slot for an address. Returns the function that frees it, which may be called again; undefined at a limit.
   */
  take(address: string): (() => void) | undefined {
    const { open_max, open_of_address_max, opened_per_second_max } = this.#limits;
    const network = countingKeyOf(address);
    const open = this.#open.get(network) ?? 0;
    if (!this.#slots.hasRoomFor(this.#game_id)) return undefined;
    if (this.#total >= open_max || open >= open_of_address_max) return undefined;
    const opened = this.#opened.get(network) ?? { count: 0 };
    if (opened.count >= opened_per_second_max) return undefined;
    // The second begins with its first connection.
    if (opened.count === 0) this.#opened.set(network, opened);
    opened.count += 1;
    this.#open.set(network, open + 1);
    this.#total += 1;
    this.#taken_at = performance.now();
    this.#slots.take(this.#game_id);
    let is_free = false;
    return () => {
      if (!is_free) this.#free(network);
      is_free = true;
    };
  }

  #free(network: string): void {
    const left = (this.#open.get(network) ?? 1) - 1;
    if (left > 0) this.#open.set(network, left);
    else this.#open.delete(network);
    this.#total -= 1;
    this.#slots.free(this.#game_id);
  }
}

/** Counts what is open at each server. */
export class SlotsOfServers {
  readonly #limits: SlotLimits;
  readonly #slots: Slots;
  readonly #of_servers = new Map<string, ServerSlots>();
  #unused_deleted_at = performance.now();

  constructor(limits: SlotLimits, slots: Slots) {
    this.#limits = limits;
    this.#slots = slots;
  }

  /** Maximum number of slots at all servers together. */
  get max(): number {
    return this.#slots.max;
  }

  /** How many slots are taken at all servers. */
  get taken(): number {
    return this.#slots.taken;
  }

  /** How many servers have slots, for tests. */
  get server_count(): number {
    return this.#of_servers.size;
  }

  /**
   * Takes a slot at a server. Returns the function that frees it. Throws GATEWAY_TOO_MANY_CONNECTIONS at a limit of the
   * server or the address, and GATEWAY_GAME_BUSY if the game has as many slots as it may.
   */
  take({ server_id, game_id }: CountedServer, address: string): () => void {
    if (!this.#slots.hasRoomFor(game_id)) throw new ServiceError('GATEWAY_GAME_BUSY', {}, RETRY);
    this.#deleteUnused();
    const of_server = this.#of_servers.get(server_id) ?? new ServerSlots(this.#limits, this.#slots, game_id);
    this.#of_servers.set(server_id, of_server);
    const free = of_server.take(address);
    if (!free) throw new ServiceError('GATEWAY_TOO_MANY_CONNECTIONS', {}, RETRY);
    return free;
  }

  /** Deletes the slots of servers that limit nothing, once a second. */
  #deleteUnused(): void {
    const now = performance.now();
    if (now - this.#unused_deleted_at < SECOND_MS) return;
    this.#unused_deleted_at = now;
    for (const [server_id, of_server] of this.#of_servers)
      if (of_server.isUnused(now)) this.#of_servers.delete(server_id);
  }
}
