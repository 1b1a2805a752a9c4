import type { Signal } from '@preact/signals';

/** Sets a signal at most once for each frame of the screen, so that a page that is not visible costs nothing. */
export function perFrame<Value>(target: Signal<Value>): { show(next: Value): void; stop(): void } {
  let frame: number | undefined;
  let latest = target.peek();
  return {
    show(next) {
      latest = next;
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        target.value = latest;
      });
    },
    stop() {
      if (frame !== undefined) cancelAnimationFrame(frame);
    },
  };
}
