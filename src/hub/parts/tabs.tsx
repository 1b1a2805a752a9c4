import { useEffect, useRef } from 'preact/hooks';
import { is_administrator } from '../data/bearer.ts';
import { type HubPath, hrefOf, hub_path, isGameName, OPERATOR } from '../data/router.ts';

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

/** The parts of the operator's page. */
export const OPERATOR_TABS = [
  [undefined, 'Overview'],
  ['database', 'Database'],
  ['work', 'Background work'],
  ['log', 'Log'],
  ['changes', 'Changes'],
] as const;

/** Returns where a tab leads. */
function tabPath(name: string | undefined): HubPath {
  const { game = '', namespace = '' } = hub_path.value;
  if (game === OPERATOR) return operatorPath(name);
  return { game, namespace, ...(name !== undefined && { page: name }) };
}

export function operatorPath(name: string | undefined): HubPath {
  return { game: OPERATOR, ...(name !== undefined && { namespace: name }) };
}

/** The pages of the namespace that the address names, or the parts of the operator's. */
export function Tabs() {
  const { game, namespace, page } = hub_path.value;
  const is_of_operator = game === OPERATOR && is_administrator.value;
  const current = is_of_operator ? namespace : page;
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone, the tabs are wider than the window.
    const tab = tabs.current?.querySelector<HTMLElement>('[aria-current]');
    tabs.current?.scrollTo({ left: (tab?.offsetLeft ?? 0) - TAB_MARGIN_PX });
  }, [current]);
  if (!is_of_operator && (!isGameName(game) || namespace === undefined)) return null;
  return (
    <nav ref={tabs} class="tabs" aria-label="Pages">
      {(is_of_operator ? OPERATOR_TABS : TABS).map(([name, text]) => {
        const is_current = current === name || (name === undefined && current === 'lobbies');
        return (
          <a key={text} href={hrefOf(tabPath(name))} {...(is_current && { 'aria-current': 'page' })}>
            {text}
          </a>
        );
      })}
    </nav>
  );
}
