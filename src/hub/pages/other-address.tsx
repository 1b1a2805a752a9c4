import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Answer } from '../data/api.ts';
import { request } from '../data/request.ts';
import { useTitle } from '../data/watched.ts';
import { LogInLayout } from '../parts/log-in-layout.tsx';

const BOOTSTRAP = '/cloud/bootstrap';

/** Shown at an address at which the service does not let the hub work, such as another name of the machine. */
export function OtherAddressPage() {
  const hub = useSignal<string | undefined>(undefined);
  useTitle('Another address');
  useEffect(() => {
    void request<Answer<typeof BOOTSTRAP, 'get'>>('GET', BOOTSTRAP).then(
      ({ origins }) => {
        hub.value = origins.hub;
      },
      // The page then says less.
      () => {},
    );
  }, []);
  return (
    <LogInLayout>
      <div class="card pad stack">
        <p>The hub does not work at {location.origin}.</p>
        {hub.value !== undefined && (
          <p>
            It is at <a href={new URL(location.pathname + location.search, hub.value).href}>{hub.value}</a>.
          </p>
        )}
      </div>
    </LogInLayout>
  );
}
