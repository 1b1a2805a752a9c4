import { signal } from '@preact/signals';

const WIDE = matchMedia('(width >= 60rem)');

/** Whether a row of a list fits in one line. */
export const is_wide = signal(WIDE.matches);
WIDE.addEventListener('change', ({ matches }) => {
  is_wide.value = matches;
});
