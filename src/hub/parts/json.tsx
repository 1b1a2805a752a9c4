/** A value as indented JSON. */
export function Json({ of, label }: { of: unknown; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="json card pad" tabIndex={0} aria-label={label}>
      <pre>{JSON.stringify(of, undefined, 2)}</pre>
    </section>
  );
}
