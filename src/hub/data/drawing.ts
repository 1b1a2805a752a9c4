import type { Signal } from '@preact/signals';

/** The time between two changes of what is shown: layout and paint of a change cost more than all scripts. */
const APART_MS = 100;

/** Sets a signal ten times a second at most. */
interface Drawing<Value> {
  /** The latest value, which may not be shown yet. */
  readonly latest: Value;
  show(next: Value): void;
  stop(): void;
}

/**
 * Sets a signal when the browser draws the page: at once, and then ten times a second at most. A page that is not visible
 * is not drawn, so it costs nothing.
 */
export function drawInto<Value>(target: Signal<Value>): Drawing<Value> {
  let latest = target.peek();
  let has_next = false;
  let request: number | undefined;
  let pause: ReturnType<typeof setTimeout> | undefined;
  const draw = () => {
    request = undefined;
    has_next = false;
    target.value = latest;
    pause = setTimeout(() => {
      pause = undefined;
      if (has_next) request = requestAnimationFrame(draw);
    }, APART_MS);
  };
  return {
    get latest() {
      return latest;
    },
    show(next) {
      latest = next;
      has_next = true;
      if (pause === undefined) request ??= requestAnimationFrame(draw);
    },
    stop() {
      if (request !== undefined) cancelAnimationFrame(request);
      clearTimeout(pause);
    },
  };
}
