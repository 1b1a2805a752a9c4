import { useTitle } from '../data/watched.ts';
import { LogInLayout } from '../parts/log-in-layout.tsx';

/** Asks before a link replaces the session of another bearer. */
export function OtherSessionPage({ answer }: { answer(replaces_session: boolean): void }) {
  useTitle('Log in');
  return (
    <LogInLayout>
      <div class="card pad stack">
        <p>This link logs you in as someone else, in all tabs of this browser.</p>
        <p class="quiet">Log in only if you or someone you trust created the link.</p>
        <div class="row">
          <button type="button" onClick={() => answer(true)}>
            Log in
          </button>
          <button type="button" class="main" onClick={() => answer(false)}>
            Stay who you are
          </button>
        </div>
      </div>
    </LogInLayout>
  );
}
