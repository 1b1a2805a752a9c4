/** What the history keeps of a page: how far it is scrolled. */
interface PageState {
  top?: number;
}

/** Events by which a user scrolls, or begins something else. */
const OF_USER = ['wheel', 'touchstart', 'pointerdown', 'keydown'];

/** Ends the attempts to scroll a page to where it was; undefined while there are none. */
let stopRestoring: (() => void) | undefined;

/**
 * Keeps how far each page is scrolled, so that "back" and a reload lead to the same place. The browser cannot do it: a page
 * is short until what it shows has come.
 */
export function keepScroll(): void {
  history.scrollRestoration = 'manual';
  addEventListener('scrollend', rememberScroll);
  addEventListener('popstate', restoreScroll);
  restoreScroll();
}

/** Remembers how far the present page is scrolled. */
export function rememberScroll(): void {
  if (stopRestoring) return;
  history.replaceState({ ...history.state, top: scrollY } satisfies PageState, '');
}

/** Shows another page from its top. */
export function scrollToTop(): void {
  stopRestoring?.();
  scrollTo(0, 0);
}

/** Scrolls the page to where it was, once it is high enough, unless the user does something before. */
function restoreScroll(): void {
  stopRestoring?.();
  const { top = 0 }: PageState = history.state ?? {};
  const growing = new ResizeObserver(() => {
    scrollTo(0, top);
    if (Math.abs(scrollY - top) < 1) stopRestoring?.();
  });
  const stop = () => {
    growing.disconnect();
    for (const type of OF_USER) removeEventListener(type, stop, true);
    stopRestoring = undefined;
  };
  stopRestoring = stop;
  for (const type of OF_USER) addEventListener(type, stop, true);
  growing.observe(document.body);
}
