import { useTitle } from '../data/watched.ts';

/** Shown for an address that leads to nothing. */
export function NotFoundPage({ what = 'page' }: { what?: string }) {
  useTitle('Not found');
  return (
    <div class="card pad stack">
      <h1>There is no such {what}</h1>
      <p>Nothing has this address, or you have no access to it. Check that it is complete.</p>
      <p>
        <a href="/">All games</a>
      </p>
    </div>
  );
}
