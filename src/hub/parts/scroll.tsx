import type { ComponentChildren } from 'preact';

/** A table that may be wider than a phone. */
export function Scroll({ children }: { children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <div class="scroll card" tabIndex={0}>
      {children}
    </div>
  );
}
