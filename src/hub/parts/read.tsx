import type { ComponentChildren } from 'preact';
import type { Reading } from '../data/reading.ts';
import { Notice } from './notice.tsx';

interface ReadProps<Body> {
  of: Pick<Reading<Body>, 'read' | 'failure'>;
  children(body: Body): ComponentChildren;
}

/** What was read last. If the latest attempt failed, a notice above it says why. */
export function Read<Body>({ of: { read, failure }, children }: ReadProps<Body>) {
  return (
    <>
      {failure.value && <Notice error={failure.value} />}
      {read.value !== undefined ? children(read.value) : !failure.value && <p class="quiet">Loading …</p>}
    </>
  );
}
