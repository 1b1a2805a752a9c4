import type { ComponentChildren } from 'preact';
import type { Reading } from '../data/reading.ts';
import { Notice } from './notice.tsx';

interface WhenReadProps<Body> {
  of: Pick<Reading<Body>, 'answer' | 'failure'>;
  children(body: Body): ComponentChildren;
}

/** What was read last. If the latest attempt failed, a notice above it says why. */
export function WhenRead<Body>({ of: { answer, failure }, children }: WhenReadProps<Body>) {
  return (
    <>
      {failure.value && <Notice error={failure.value} />}
      {answer.value !== undefined ? children(answer.value) : !failure.value && <p class="quiet">Loading …</p>}
    </>
  );
}
