import { useAction } from '../../data/actions.ts';
import { type Answer, remove } from '../../data/api.ts';
import { may_act } from '../../data/bearer.ts';
import { shortId, useNamespace } from '../../data/namespaces.ts';
import { type Reading, useReading } from '../../data/reading.ts';
import { Notice } from '../../parts/notice.tsx';
import { Section } from '../../parts/section.tsx';
import { momentOf } from '../../parts/time.tsx';

const SHARES = '/cloud/games/{game_id}/namespaces/{namespace_id}/shares';
const SHARE = '/cloud/games/{game_id}/namespaces/{namespace_id}/shares/{share_id}';

type Share = Answer<typeof SHARES, 'get'>['shares'][number];

/** Reads the valid share links of the namespace. */
export function useShareLinks(): Reading<Answer<typeof SHARES, 'get'>> {
  const { scope } = useNamespace();
  return useReading(SHARES, scope);
}

/** The valid share links of the namespace, which can be revoked. */
export function ShareLinks({ of: { answer, failure, again } }: { of: ReturnType<typeof useShareLinks> }) {
  const shares = answer.value?.shares ?? [];
  return (
    <>
      {failure.value && <Notice error={failure.value} />}
      {shares.length > 0 && (
        <Section title="Share links">
          <ul class="card pad stack">
            {shares.map((share) => (
              <ShareRow key={share.share_id} share={share} onChange={again} />
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function ShareRow({ share, onChange }: { share: Share; onChange(): Promise<void> }) {
  const { scope } = useNamespace();
  const { is_busy, act } = useAction();
  const { share_id, lobby_id, display_name, expire_ts } = share;
  const what = `${lobby_id === undefined ? 'all lobbies' : `lobby ${shortId(lobby_id)}`} ${display_name}`;
  const revoke = () =>
    act('The link is revoked.', async () => {
      await remove(SHARE, { ...scope, share_id });
      await onChange();
    });
  return (
    <li class="row">
      <span>{what}</span>
      <span class="quiet">until {momentOf(expire_ts)}</span>
      {may_act.value && (
        <button
          type="button"
          class="small"
          aria-label={`Revoke the link to ${what}`}
          disabled={is_busy.value}
          onClick={() => void revoke()}
        >
          Revoke
        </button>
      )}
    </li>
  );
}
