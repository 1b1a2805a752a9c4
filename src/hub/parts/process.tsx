import type { Answer } from '../data/api.ts';
import { shortId } from '../data/namespaces.ts';
import { Age } from './time.tsx';

/** Which process of the service has answered. */
export function Process({ of }: { of: Answer<'/cloud/service', 'get'>['process'] }) {
  return (
    <p class="quiet">
      From the process on {of.host} <span class="mono">{shortId(of.machine_id)}</span>, {of.version}, started{' '}
      <Age of={of.start_ts} /> ago.
    </p>
  );
}
