import { useAction } from '../../data/actions.ts';
import { remove } from '../../data/api.ts';
import { may_act } from '../../data/bearer.ts';
import { shortId, useNamespace } from '../../data/namespaces.ts';
import { useReading } from '../../data/reading.ts';
import { Notice } from '../../parts/notice.tsx';
import { Section } from '../../parts/section.tsx';

const SHARES = '/cloud/games/{game_id}/namespaces/{namespace_id}/shares';
const SHARE = '/cloud/games/{game_id}/namespaces/{namespace_id}/shares/{share_id}';

/** The valid share links of the namespace, which can be revoked. */
export function ShareLinks() {
  const { scope } = useNamespace();
  const { read, again } = useReading(SHARES, scope);
  const { is_busy, act } = useAction();
  const revoke = (share_id: string) =>
    act('The link is revoked.', async () => {
      await remove(SHARE, { ...scope, share_id });
      await again();
    });
  if (read.value instanceof Error) return <Notice error={read.value} />;
  if (read.value === undefined || read.value.shares.length === 0) return null;
  return (
    <Section title="Share links">
      <ul class="card pad stack">
        {read.value.shares.map(({ share_id, lobby_id, display_name, expire_ts }) => (
          <li key={share_id} class="row">
            <span>
              {lobby_id === undefined ? 'all lobbies' : `lobby ${shortId(lobby_id)}`} {display_name}
            </span>
            <span class="quiet">until {new Date(expire_ts).toLocaleString()}</span>
            {may_act.value && (
              <button type="button" class="small" disabled={is_busy.value} onClick={() => void revoke(share_id)}>
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
