import type { ComponentChildren } from 'preact';
import { run } from '../data/actions.ts';
import { is_administrator } from '../data/bearer.ts';
import { followLink, hrefOf, hub_path, isGameName } from '../data/router.ts';
import { is_connected, logOut } from '../data/session.ts';
import icon from '../icon.svg';
import { is_covered } from './dialog.tsx';
import { Outcome } from './outcome.tsx';
import { Palette } from './palette.tsx';
import { Tabs } from './tabs.tsx';

/** A page below the bar, which says where you are and whether the page is connected, and lets you log out. */
export function Layout({ children }: { children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: links bubble up to here, and they take the keyboard
    // biome-ignore lint/a11y/useKeyWithClickEvents: a link that is followed by the keyboard is a click, too
    <div onClick={followLink}>
      <header class="bar">
        <div class="bar-row">
          <a class="brand" href="/" aria-label="Muster">
            <img src={icon} width={22} height={22} alt="" />
            <span>Muster</span>
          </a>
          <Crumbs />
          <div class="bar-end">
            <Connection />
            <Palette />
            {is_administrator.value && <a href="/hub/~operator">Operator</a>}
            <button type="button" class="small" onClick={() => void run(undefined, logOut)}>
              Log out
            </button>
          </div>
        </div>
        <Tabs />
      </header>
      <main>{children}</main>
      {!is_covered.value && <Outcome />}
    </div>
  );
}

function Crumbs() {
  const { game, namespace } = hub_path.value;
  if (!isGameName(game)) return null;
  return (
    <nav class="crumbs" aria-label="Where you are">
      <span class="quiet">/</span>
      <a href={hrefOf({ game })}>{game}</a>
      {namespace !== undefined && (
        <>
          <span class="quiet">/</span>
          <a href={hrefOf({ game, namespace })}>{namespace}</a>
        </>
      )}
    </nav>
  );
}

/** Whether changes are pushed to the page now. */
export function Connection() {
  const text = is_connected.value ? 'Live' : 'Connecting …';
  return (
    <span class={`connection ${is_connected.value ? 'is-connected' : ''}`} role="status">
      {text}
    </span>
  );
}
