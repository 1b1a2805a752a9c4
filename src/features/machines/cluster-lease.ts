import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Tx } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { FailureDetector, type ReadTimes } from './rules.ts';
import * as store from './store.ts';
import { type MachineSnapshot, NO_HOLDER } from './tables.ts';

/** Part of `take_over_after_ms` for which a heartbeat allows work. Calls that are under way then may end in the rest. */
const VALID_SHARE = 0.8;
const ATTEMPT_AGAIN_AFTER_MS = 500;
/** Pause after a cluster was offered that this process does not reach either. */
const OFFER_AGAIN_AFTER_MS = 5_000;

/** The machine of a cluster, which several processes share. */
export interface ClusterMachine {
  node_id: string;
  /** Its name for operators. */
  name: string;
}

/** The lease of a cluster's machine, while this process has it. */
export interface HeldCluster {
  node_id: string;
  /** Aborted when this process no longer has the lease. */
  ended: AbortSignal;
  /**
   * Returns whether this process may change the cluster now, by its own clock. That clock stands still while the host is
   * suspended, so until the next heartbeat such a process may act beside its successor. Stays true while the lease is offered;
   * `timeLeft` is 0 then.
   */
  mayAct(): boolean;
  /**
   * Returns how many milliseconds are left, by the same clock, until another process may take the lease over; 0 once it has
   * ended, or while it is offered or about to be.
   */
  timeLeft(): number;
  /** Locks the machine's row until the transaction ends. Returns undefined if this process is no longer its holder. */
  lockHeld(tx: Tx): Promise<{ takes_servers: boolean } | undefined>;
  /**
   * Sets whether another process that reaches the cluster may take the lease over. Until one does, this process stays the
   * holder, so that the machine is not declared lost while no process reaches the cluster.
   */
  setOffer(offer: Offer): Promise<void>;
  /** Lets another process have the lease. */
  release(state: { has_servers: boolean }): Promise<void>;
}

/**
 * Whether the holder offers the lease. From `prepared` on, the holder begins no changes of the cluster. Those under way end
 * before the offer is `made`, so none runs beside the next holder.
 */
export type Offer = 'none' | 'prepared' | 'made';

interface ClusterLeaseOptions {
  database: Database;
  events: Events;
  own: { node_id: string; datacenter_id: string; place: string; host: string };
  heartbeat_ms: number;
  /** How long the heartbeat of the machine may stay the same until another process takes it over. */
  take_over_after_ms: number;
  /** How long the heartbeat of the machine may stay the same until it is declared lost with its servers. */
  lost_after_ms: number;
  /**
   * How long the machine may rest, after its last process was stopped and left servers running, until it is declared
   * lost.
   */
  rest_ms: number;
  takesServers(): boolean;
  /** Requests a heartbeat now. */
  wakeHeartbeat(): void;
}

/** The lease while this process has it. Times are those of `performance.now()`. */
interface Held {
  holder: string;
  /** Until when this process may change the cluster. */
  valid_until: number;
  /** From when another process may take the lease over. */
  may_be_taken_over_at: number;
  offer: Offer;
  ended: AbortController;
  timer: Timer | undefined;
}

/** What a heartbeat has read. */
interface HeartbeatRead extends ReadTimes {
  machines: readonly MachineSnapshot[];
  /** Ids of the machines whose heartbeats this process has written. */
  written: ReadonlySet<string>;
}

/** Why the lease may be acquired. */
type Vacancy =
  | { is: 'without_holder' }
  /** The holder does not reach the cluster. */
  | { is: 'offered' }
  /** The heartbeat of the holder has stayed the same. */
  | { is: 'late'; beat: number };

interface AcquireOptions {
  /** Returns whether this process reaches the cluster. */
  reachesCluster(): Promise<boolean>;
  /** Ends the wait. */
  signal: AbortSignal;
}

/**
 * The lease of a cluster's machine, of which one process at a time is the holder. The heartbeat of the process writes that
 * of the cluster too. Another process takes the lease over once the heartbeat has stayed the same for a while, or once the
 * holder offers it. By its own clock the holder stops before that, so that a process that was paused or cut off does no
 * work beside its successor. That clock stands still while the host is suspended: then the holder notices only at its
 * next heartbeat that it no longer has the lease, and until then its transactions fail by `lockHeld`.
 */
export class ClusterLease {
  #cluster: ClusterMachine | undefined;
  #held: Held | undefined;
  #onVacancy: ((vacancy: Vacancy) => void) | undefined;
  readonly #detector: FailureDetector;

  constructor(private readonly options: ClusterLeaseOptions) {
    this.#detector = new FailureDetector(2 * options.heartbeat_ms);
  }

  /** The machine of the cluster, once it is known. */
  get machine(): ClusterMachine | undefined {
    return this.#cluster;
  }

  /** The machine whose heartbeat this process writes, and its holder; undefined if another process is the holder. */
  get holding(): store.Holding | undefined {
    return this.#cluster && this.#held && { node_id: this.#cluster.node_id, holder: this.#held.holder };
  }

  /** Sets the cluster. From then on, this process may acquire the lease. */
  join(cluster: ClusterMachine): void {
    this.#cluster = cluster;
  }

  /**
   * Applies what a heartbeat has read. `sent_for`: the holding that the heartbeat was sent for. Returns the time until the next
   * heartbeat is due.
   */
  onHeartbeat(sent_for: store.Holding | undefined, { machines, written, ...times }: HeartbeatRead): number {
    const { own, take_over_after_ms } = this.options;
    const cluster = this.#cluster;
    if (!cluster) return Number.POSITIVE_INFINITY;
    if (this.#held) {
      // A heartbeat that began before this process became the holder does not show whether it still is.
      if (sent_for?.holder !== this.#held.holder) return 0;
      if (written.has(cluster.node_id)) this.#extend(times.asked_ms);
      else this.#end('taken_over');
      return Number.POSITIVE_INFINITY;
    }
    const row = machines.find(({ node_id }) => node_id === cluster.node_id);
    const detection = this.#detector.detect(row ? [{ ...row, lost_after_ms: take_over_after_ms }] : [], times);
    // A process whose machine was declared lost has to come back first.
    if (!written.has(own.node_id)) return Number.POSITIVE_INFINITY;
    const has_no_holder = row?.state !== 'up' || row.holder === NO_HOLDER || row.place === own.place;
    const [lost] = detection.lost;
    if (has_no_holder) this.#onVacancy?.({ is: 'without_holder' });
    else if (lost) this.#onVacancy?.({ is: 'late', beat: lost.beat });
    else if (row.is_offered) this.#onVacancy?.({ is: 'offered' });
    return detection.next_in_ms;
  }

  /** Forgets all heartbeats after one that failed. */
  onHeartbeatFailed(): void {
    this.#detector.forget();
  }

  /** Waits until this process is the holder. Returns undefined once the signal is aborted. */
  async acquire(cluster: ClusterMachine, { reachesCluster, signal }: AcquireOptions): Promise<HeldCluster | undefined> {
    const { events, wakeHeartbeat } = this.options;
    while (!signal.aborted) {
      const vacancy = await this.#awaitVacancy(signal);
      if (!vacancy) return undefined;
      if (vacancy.is === 'offered' && !(await reachesCluster())) {
        await sleep(OFFER_AGAIN_AFTER_MS, undefined, { signal }).catch(() => {});
        continue;
      }
      try {
        const held = await this.#tryAcquire(cluster, vacancy);
        if (held) return held;
      } catch (cause) {
        events.emit({ event: 'lease_failed', step: 'acquire', cause });
      }
      await sleep(ATTEMPT_AGAIN_AFTER_MS, undefined, { signal }).catch(() => {});
      wakeHeartbeat();
    }
    return undefined;
  }

  async #awaitVacancy(signal: AbortSignal): Promise<Vacancy | undefined> {
    const { promise, resolve } = Promise.withResolvers<Vacancy | undefined>();
    const end = () => resolve(undefined);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    this.#onVacancy = resolve;
    this.options.wakeHeartbeat();
    try {
      return await promise;
    } finally {
      this.#onVacancy = undefined;
      signal.removeEventListener('abort', end);
    }
  }

  /** Tries to acquire the lease. Returns undefined if another process has got it. */
  async #tryAcquire({ node_id, name }: ClusterMachine, vacancy: Vacancy): Promise<HeldCluster | undefined> {
    const { database, events, own, lost_after_ms, takesServers, wakeHeartbeat } = this.options;
    const { datacenter_id, place, host } = own;
    const asked_ms = performance.now();
    const holder = crypto.randomUUID();
    const registration = { node_id, datacenter_id, place, holder, lost_after_ms };
    const named = { ...registration, name: `${name}, by ${host}` };
    const is_registered = await database.transact(async (tx) => {
      // The earlier holder may be paused in a transaction, which would commit beside those of this process.
      await store.awaitServersTaken(tx, node_id);
      return await store.registerMachine(tx, named, vacancy.is === 'late' ? vacancy.beat : null);
    });
    if (!is_registered) return undefined;
    const ended = new AbortController();
    this.#held = { holder, valid_until: 0, may_be_taken_over_at: 0, offer: 'none', ended, timer: undefined };
    this.#extend(asked_ms);
    events.emit({ event: 'cluster_taken', node_id, cluster: name });
    wakeHeartbeat();
    const isHolder = () => this.#held?.holder === holder;
    return {
      node_id,
      ended: ended.signal,
      mayAct: () => isHolder() && performance.now() < (this.#held?.valid_until ?? 0),
      timeLeft: () => {
        const held = isHolder() ? this.#held : undefined;
        return held?.offer === 'none' ? Math.max(held.may_be_taken_over_at - performance.now(), 0) : 0;
      },
      async lockHeld(tx) {
        const held = await store.lockHeld(tx, { node_id, holder });
        return held && { takes_servers: takesServers() && !held.is_draining };
      },
      setOffer: async (offer) => {
        const held = isHolder() ? this.#held : undefined;
        if (!held) return;
        if (offer !== 'none') held.offer = offer;
        const is_held = await database.transact(async (tx) => {
          if (!(await store.lockHeld(tx, { node_id, holder }))) return false;
          await store.setOffered(tx, { node_id, holder }, offer === 'made');
          return true;
        });
        // Another process has taken the lease. Until the next heartbeat ends it here, the offer stays, so that `timeLeft` is 0.
        if (is_held) held.offer = offer;
      },
      release: async (state) => {
        if (!isHolder()) return;
        this.#end(undefined);
        await this.#release({ node_id, holder }, state);
      },
    };
  }

  async #release(holding: store.Holding, { has_servers }: { has_servers: boolean }): Promise<void> {
    const { database, own, rest_ms } = this.options;
    await database.transact(async (tx) => {
      if (await store.isAnyOtherUsing(tx, { cluster_id: holding.node_id, node_id: own.node_id }))
        return await store.release(tx, holding);
      const state = has_servers ? 'resting' : 'stopped';
      await store.setStopped(tx, holding, { state, lost_after_ms: rest_ms });
    });
  }

  #extend(asked_ms: number): void {
    const held = this.#held;
    if (!held) return;
    const { take_over_after_ms } = this.options;
    held.valid_until = asked_ms + take_over_after_ms * VALID_SHARE;
    held.may_be_taken_over_at = asked_ms + take_over_after_ms;
    clearTimeout(held.timer);
    held.timer = setTimeout(() => this.#end('expired'), held.valid_until - performance.now());
    held.timer.unref();
  }

  #end(why: 'taken_over' | 'expired' | undefined): void {
    const held = this.#held;
    if (!held || !this.#cluster) return;
    this.#held = undefined;
    clearTimeout(held.timer);
    const { node_id, name } = this.#cluster;
    if (why !== undefined) this.options.events.emit({ event: 'cluster_lost', node_id, cluster: name, why });
    this.#detector.forget();
    held.ended.abort();
  }
}
