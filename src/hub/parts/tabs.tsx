import { useEffect, useRef } from 'preact/hooks';
import { hrefOf, place } from '../data/router.ts';

/** What stays visible before the current tab. */
const TAB_MARGIN_PX = 60;
/** The pages of a namespace. */
export const TABS = [
  [undefined, 'Lobbies'],
  ['servers', 'Servers'],
  ['why', 'Why'],
  ['versions', 'Versions'],
  ['try', 'Try it'],
  ['settings', 'Settings'],
  ['changes', 'Changes'],
] as const;

/** The pages of the namespace that the address names. */
export function Tabs() {
  const { game, namespace, page: current } = place.value;
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone, the tabs are wider than the window.
    const tab = tabs.current?.querySelector<HTMLElement>('[aria-current]');
    tabs.current?.scrollTo({ left: (tab?.offsetLeft ?? 0) - TAB_MARGIN_PX });
  }, [current]);
  if (game === undefined || namespace === undefined) return null;
  return (
    <nav ref={tabs} class="tabs" aria-label="Pages">
      {TABS.map(([page, text]) => {
        const is_current = current === page || (page === undefined && current === 'lobbies');
        return (
          <a
            key={text}
            href={hrefOf({ game, namespace, ...(page !== undefined && { page }) })}
            {...(is_current && { 'aria-current': 'page' })}
          >
            {text}
          </a>
        );
      })}
    </nav>
  );
}
