import type { Signal } from '@preact/signals';

/** The time between two changes of what is shown: layout and paint of a change cost more than all scripts. */
const APART_MS = 100;

/**
 * Sets a signal in a frame of the screen: at once, and then ten times a second at most. A page that is not visible has no
 * frames, so it costs nothing.
 */
export function paced<Value>(target: Signal<Value>): { show(next: Value): void; stop(): void } {
  let latest = target.peek();
  let has_next = false;
  let frame: number | undefined;
  let pause: ReturnType<typeof setTimeout> | undefined;
  const draw = () => {
    frame = undefined;
    has_next = false;
    target.value = latest;
    pause = setTimeout(() => {
      pause = undefined;
      if (has_next) frame = requestAnimationFrame(draw);
    }, APART_MS);
  };
  return {
    show(next) {
      latest = next;
      has_next = true;
      if (pause === undefined) frame ??= requestAnimationFrame(draw);
    },
    stop() {
      if (frame !== undefined) cancelAnimationFrame(frame);
      clearTimeout(pause);
    },
  };
}
