import type { MachineRow } from './tables.ts';

/** The facts by which a machine counts as late or lost. */
export type JudgedMachine = Pick<MachineRow, 'node_id' | 'holder' | 'beat' | 'state' | 'lost_after_ms'>;

/** When a read of all machines began and ended, on this process's monotonic clock. */
export interface ReadTimes {
  asked_ms: number;
  answered_ms: number;
}

interface Verdict<Machine> {
  /** Machines to declare lost. */
  lost: Machine[];
  /** The ids of machines that run but whose beat is overdue. */
  late: Set<string>;
  /** Time until the next machine is lost unless its beat changes; infinite if there is none. */
  next_in_ms: number;
}

/** A machine is late after this share of `lost_after_ms`: two beats were missed. */
const LATE_SHARE = 0.4;
/** Beats within `lost_after_ms`. */
const BEATS_UNTIL_LOST = 6;

/** Returns the interval of beats. */
export function beatEvery(lost_after_ms: number): number {
  return lost_after_ms / BEATS_UNTIL_LOST;
}

/**
 * Judges other machines by their beats. Measures on this process's monotonic clock how long each beat has stayed the same, so
 * no two clocks are compared. Forgets its measurements after a while without reads, because it did not see whether the others
 * raised their beats.
 */
export class Judgement {
  readonly #unchanged = new Map<string, { holder: string; beat: number; since_ms: number }>();
  #answered_ms: number | undefined;

  /** `blind_after_ms`: after this time without a read, earlier reads do not count. */
  constructor(readonly blind_after_ms: number) {}

  /** Forgets all measurements. */
  forget(): void {
    this.#unchanged.clear();
    this.#answered_ms = undefined;
  }

  /** Judges the other machines by a new read of them. */
  judge<Machine extends JudgedMachine>(machines: readonly Machine[], { asked_ms, answered_ms }: ReadTimes) {
    if (answered_ms - (this.#answered_ms ?? asked_ms) > this.blind_after_ms) this.forget();
    this.#answered_ms = answered_ms;
    const judged = machines.filter(({ state }) => state === 'up' || state === 'resting');
    const verdict: Verdict<Machine> = { lost: [], late: new Set(), next_in_ms: Number.POSITIVE_INFINITY };
    for (const machine of judged) {
      const { node_id, holder, beat, state, lost_after_ms } = machine;
      const known = this.#unchanged.get(node_id);
      if (known?.holder !== holder || known.beat !== beat) {
        this.#unchanged.set(node_id, { holder, beat, since_ms: answered_ms });
        verdict.next_in_ms = Math.min(verdict.next_in_ms, lost_after_ms);
        continue;
      }
      // From the end of the read that saw the beat first to the beginning of this one: never too long.
      const unchanged_ms = asked_ms - known.since_ms;
      if (unchanged_ms >= lost_after_ms) verdict.lost.push(machine);
      else verdict.next_in_ms = Math.min(verdict.next_in_ms, lost_after_ms - unchanged_ms);
      if (state === 'up' && unchanged_ms >= lost_after_ms * LATE_SHARE) verdict.late.add(node_id);
    }
    const ids = new Set(judged.map(({ node_id }) => node_id));
    for (const node_id of this.#unchanged.keys()) if (!ids.has(node_id)) this.#unchanged.delete(node_id);
    return verdict;
  }
}
