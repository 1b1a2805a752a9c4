import { effect, signal, useSignal } from '@preact/signals';
import type { Refusal } from '../../client/wire.ts';
import { hub_path } from './router.ts';

/** A way back from what an action did, and what it did then, in words. */
export interface Undo {
  act(): Promise<unknown>;
  done: string;
}

type Outcome = { error: Partial<Refusal> & { message: string } } | { done: string; undo?: Undo };

/** Why the latest action failed, or what it did; undefined once the user has seen it. */
export const outcome = signal<Outcome | undefined>(undefined);

const SHOWN_FOR_MS = { without_undo: 6_000, with_undo: 30_000 };
let hiding: ReturnType<typeof setTimeout> | undefined;

// Why an action failed is about the page on which it was begun.
effect(() => {
  hub_path.value;
  if (hasFailed(outcome.peek())) outcome.value = undefined;
});

/** Runs an action and shows its outcome: `done`, what it did in words, with a way to undo it; or why it failed. */
export async function run(done: string | undefined, work: () => Promise<unknown>, undo?: Undo): Promise<void> {
  try {
    await work();
  } catch (error) {
    showOutcome({ error: error instanceof Error ? error : { message: String(error) } });
    return;
  }
  if (done !== undefined) showOutcome({ done, ...(undo && { undo }) });
  // The undo of an earlier action stays; why an earlier one failed is shown no longer.
  else if (hasFailed(outcome.value)) outcome.value = undefined;
}

function hasFailed(of: Outcome | undefined): boolean {
  return of !== undefined && 'error' in of;
}

/** Shows an outcome; one without an error for some seconds. */
export function showOutcome(next: Outcome): void {
  clearTimeout(hiding);
  outcome.value = next;
  if ('error' in next) return;
  hiding = setTimeout(
    () => {
      outcome.value = undefined;
    },
    next.undo ? SHOWN_FOR_MS.with_undo : SHOWN_FOR_MS.without_undo,
  );
}

/** Returns whether an action runs, and a function that runs one unless one runs already. */
export function useAction() {
  const is_busy = useSignal(false);
  async function act(...action: Parameters<typeof run>): Promise<void> {
    if (is_busy.value) return;
    is_busy.value = true;
    await run(...action);
    is_busy.value = false;
  }
  return { is_busy, act };
}
