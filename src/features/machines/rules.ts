import type { MachineRow } from './tables.ts';

/** The facts by which a machine counts as late or lost. */
export type ObservedMachine = Pick<MachineRow, 'node_id' | 'holder' | 'beat' | 'state' | 'lost_after_ms'>;

/** When a read of all machines began and ended, on this process's monotonic clock. */
export interface ReadTimes {
  asked_ms: number;
  answered_ms: number;
}

interface Detection<Machine> {
  /** Machines to declare lost. */
  lost: Machine[];
  /** The ids of machines that run but whose heartbeat is overdue. */
  late: Set<string>;
  /** Time until the next machine is lost unless its heartbeat changes; infinite if there is none. */
  next_in_ms: number;
}

/** A machine is late after this share of `lost_after_ms`: two heartbeats were missed. */
const LATE_SHARE = 0.4;
/** Heartbeats within `lost_after_ms`. */
const HEARTBEATS_UNTIL_LOST = 6;

/** Returns the interval of heartbeats. */
export function heartbeatInterval(lost_after_ms: number): number {
  return lost_after_ms / HEARTBEATS_UNTIL_LOST;
}

/**
 * Detects machines whose heartbeat has stopped. Measures on this process's monotonic clock how long each heartbeat has stayed
 * the same, so no two clocks are compared. Forgets its measurements after a while without reads, because it did not see
 * whether the others wrote their heartbeats.
 */
export class FailureDetector {
  readonly #unchanged = new Map<string, { holder: string; beat: number; since_ms: number }>();
  #answered_ms: number | undefined;

  /** `blind_after_ms`: after this time without a read, earlier reads do not count. */
  constructor(readonly blind_after_ms: number) {}

  /** Forgets all measurements. */
  forget(): void {
    this.#unchanged.clear();
    this.#answered_ms = undefined;
  }

  /** Returns which of the other machines are late or lost, by a new read of them. */
  detect<Machine extends ObservedMachine>(machines: readonly Machine[], { asked_ms, answered_ms }: ReadTimes) {
    if (answered_ms - (this.#answered_ms ?? asked_ms) > this.blind_after_ms) this.forget();
    this.#answered_ms = answered_ms;
    const running = machines.filter(({ state }) => state === 'up' || state === 'resting');
    const detection: Detection<Machine> = { lost: [], late: new Set(), next_in_ms: Number.POSITIVE_INFINITY };
    for (const machine of running) {
      const { node_id, holder, beat, state, lost_after_ms } = machine;
      const known = this.#unchanged.get(node_id);
      if (known?.holder !== holder || known.beat !== beat) {
        this.#unchanged.set(node_id, { holder, beat, since_ms: answered_ms });
        detection.next_in_ms = Math.min(detection.next_in_ms, lost_after_ms);
        continue;
      }
      // From the end of the read that saw the heartbeat first to the beginning of this one: never too long.
      const unchanged_ms = asked_ms - known.since_ms;
      if (unchanged_ms >= lost_after_ms) detection.lost.push(machine);
      else detection.next_in_ms = Math.min(detection.next_in_ms, lost_after_ms - unchanged_ms);
      if (state === 'up' && unchanged_ms >= lost_after_ms * LATE_SHARE) detection.late.add(node_id);
    }
    const ids = new Set(running.map(({ node_id }) => node_id));
    for (const node_id of this.#unchanged.keys()) if (!ids.has(node_id)) this.#unchanged.delete(node_id);
    return detection;
  }
}
