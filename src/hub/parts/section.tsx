import type { ComponentChildren } from 'preact';

/** A part of a page below a heading. */
export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="stack" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
