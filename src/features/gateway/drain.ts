import type { Events } from '../../platform/events.ts';

const CHECK_EVERY_MS = 50;

interface DrainOptions {
  events: Events;
  drain_ms: number;
  /** Returns how many connections are open. */
  count(): number;
}

/** Creates the function that waits at a stop, for a limited time, until all players have left. */
export function createDrain({ events, drain_ms, count }: DrainOptions): () => Promise<void> {
  return async () => {
    const until = performance.now() + drain_ms;
    if (drain_ms === 0 || count() === 0) return;
    events.emit({ event: 'gateway_draining', connections: count(), within_ms: drain_ms });
    while (count() > 0 && performance.now() < until) await Bun.sleep(CHECK_EVERY_MS);
    events.emit({ event: 'gateway_drained', connections: count() });
  };
}
