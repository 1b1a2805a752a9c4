import type { ComponentChildren } from 'preact';
import icon from '../icon.svg';

/** A page of a browser that is not logged in. */
export function LogInLayout({ children }: { children: ComponentChildren }) {
  return (
    <main class="log-in">
      <h1 class="row">
        <img src={icon} width={32} height={32} alt="" /> Muster
      </h1>
      {children}
    </main>
  );
}
