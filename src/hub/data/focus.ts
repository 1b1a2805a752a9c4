/** What takes the focus by itself. */
const CONTROLS = 'a[href], button, input, select, textarea, [tabindex]';
const ROWS = 'li, tr';
const PARTS = 'dialog[open], section, main';

/** Where an element was that is removed. */
interface Place {
  parent: Element;
  before: Node | null;
}

/** The element that has the focus, or had it until it was disabled or removed. */
let focused: HTMLElement | undefined;
/** Where the focused element was, once it is removed. */
let place: Place | undefined;

/**
 * Keeps the place of the keyboard. A control that is disabled for a while gets the focus back. After one that is removed,
 * the control or row in its place gets it, else the heading of the part of the page.
 */
export function keepFocus(): void {
  addEventListener('focusin', ({ target }) => {
    focused = target instanceof HTMLElement ? target : undefined;
    place = undefined;
  });
  addEventListener('pointerdown', ({ target }) => {
    // A click beside all controls takes the focus away.
    if (target instanceof Element && !target.closest(CONTROLS)) focused = undefined;
  });
  const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ['disabled'] };
  new MutationObserver(restoreFocus).observe(document.body, changes);
}

function restoreFocus(records: MutationRecord[]): void {
  if (!focused || document.activeElement !== document.body) return;
  place = placeOf(focused, records) ?? place;
  const next = focused.isConnected ? focused : place && findNear(place);
  if (!next) return;
  if (!next.matches(CONTROLS)) next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

function placeOf(element: Element, records: MutationRecord[]): Place | undefined {
  const removal = records.findLast(({ removedNodes }) => [...removedNodes].some((node) => node.contains(element)));
  const parent = removal?.target;
  if (!(parent instanceof Element)) return undefined;
  return { parent, before: removal?.previousSibling ?? null };
}

/** Returns what gets the focus instead of an element that was at a place; undefined until the page has its heading. */
function findNear({ parent, before }: Place): HTMLElement | undefined {
  // What replaces an element may be added after it was removed.
  const after = before ? before.nextSibling : parent.firstChild;
  const neighbor = [after, before].find(
    (node) => node instanceof HTMLElement && node.isConnected && node.matches(`${CONTROLS}, ${ROWS}`),
  );
  const found =
    neighbor ??
    (parent.isConnected ? (parent.closest(ROWS) ?? parent.closest(PARTS)?.querySelector('h1, h2')) : undefined) ??
    document.querySelector('main h1');
  return found instanceof HTMLElement ? found : undefined;
}
