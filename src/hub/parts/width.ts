import { signal } from '@preact/signals';

const WIDE = matchMedia('(width >= 60rem)');
const is_wide = signal(WIDE.matches);
WIDE.addEventListener('change', ({ matches }) => {
  is_wide.value = matches;
});

/** Returns whether a row of a list fits in one line. */
export function useIsWide(): boolean {
  return is_wide.value;
}
