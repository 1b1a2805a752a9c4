import { computed, signal } from '@preact/signals';
import { rememberScroll, scrollToTop } from './scroll.ts';

/**
 * What an address of the hub shows, by the parts of its path. `game` and `namespace` are names. On the page of a share link
 * they are ids, and below a page of the hub's own, such as `~groups`, `namespace` is the part after it.
 */
export interface HubPath {
  game?: string;
  namespace?: string;
  page?: string;
  id?: string;
}

/** Where a game's name would be, the page of the operator. No game has this name. */
export const OPERATOR = '~operator';
/** Where a game's name would be, the profiles of groups, each by its id. No game has this name. */
export const GROUPS = '~groups';
/** Where a game's name would be, the profiles of people, each by its id. No game has this name. */
export const PEOPLE = '~people';

const address = signal(new URL(location.href));

/** A text, so that a change of the filters is no change of the page. */
const path = computed(() => address.value.pathname);
export const hub_path = computed<HubPath>(() => readPath(path.value));
/** The filters of the page. */
export const search = computed(() => address.value.searchParams);

addEventListener('popstate', () => {
  address.value = new URL(location.href);
});

const NO_GAMES = [OPERATOR, GROUPS, PEOPLE];

/** Accepts what may be the name of a game, but not the names of the hub's own pages. */
export function isGameName(name: string | undefined): name is string {
  return name !== undefined && !NO_GAMES.includes(name);
}

/** Returns the address of a page. */
export function hrefOf({ game, namespace, page, id }: HubPath, filters: Record<string, string> = {}): string {
  const parts = [game, namespace, page, id].filter((part) => part !== undefined).map(encodeURIComponent);
  const query = Object.keys(filters).length === 0 ? '' : `?${new URLSearchParams(filters)}`;
  return parts.length === 0 ? `/${query}` : `/hub/${parts.join('/')}${query}`;
}

export function goTo(href: string): void {
  rememberScroll();
  history.pushState(null, '', href);
  address.value = new URL(location.href);
  scrollToTop();
}

/**
 * Changes a filter of the page, and removes another one: the address has them, so that it can be shared, but "back" leaves
 * the page.
 */
export function setFilter(name: string, value: string, removed?: string): void {
  const url = new URL(location.href);
  if (value === '') url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  if (removed !== undefined) url.searchParams.delete(removed);
  history.replaceState(history.state, '', url);
  address.value = url;
}

/** Returns the address of this page without a filter. */
export function hrefWithout(name: string): string {
  const url = new URL(address.value);
  url.searchParams.delete(name);
  return url.pathname + url.search;
}

/** Follows a link to another page of the hub without loading it anew, unless the user wants another tab. */
export function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  const is_plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !is_plain || link.target !== '' || link.origin !== location.origin) return;
  if (link.pathname !== '/' && !link.pathname.startsWith('/hub/')) return;
  event.preventDefault();
  goTo(link.href);
}

function readPath(pathname: string): HubPath {
  if (!pathname.startsWith('/hub/')) return {};
  const [game, namespace, page, id] = pathname.slice('/hub/'.length).split('/').map(decode);
  return {
    ...(game && { game }),
    ...(namespace && { namespace }),
    ...(page && { page }),
    ...(id && { id }),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
