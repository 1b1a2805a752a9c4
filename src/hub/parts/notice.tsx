import type { Refusal } from '../../client/wire.ts';

/** Why something could not be shown or done, in the service's words. */
export function Notice({ error }: { error: Pick<Refusal, 'message'> & Partial<Refusal> }) {
  return (
    <div class="notice" role="alert">
      {error.message} {error.code && <code class="quiet">{error.code}</code>}{' '}
      {error.ray_id && <code class="quiet">ray {error.ray_id}</code>}
    </div>
  );
}
