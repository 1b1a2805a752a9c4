import { useSignal } from '@preact/signals';
import { useAction } from '../../data/actions.ts';
import { type Answer, post } from '../../data/api.ts';
import { bearer } from '../../data/bearer.ts';
import { hrefOf } from '../../data/router.ts';
import { callApi } from '../../data/session.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Copyable } from '../../parts/copyable.tsx';

const BOOTSTRAP = '/cloud/bootstrap';
const INVITES = '/group/groups/{group_id}/invites';
const RESOLVE = '/group/groups/{group_id}/join-request/{identity_id}';
const LEAVE = '/group/groups/{group_id}/leave';
const KICK = '/group/groups/{group_id}/kick/{identity_id}';

const INVITED_FOR_MS = 7 * 24 * 3_600_000;

type Group = Answer<'/group/groups/{group_id}/profile', 'get'>['group'];

/** The members of the group that owns the game. Every member can invite people; the owner can remove members. */
export function Members({ group }: { group: Group }) {
  const { group_id, display_name, members, owner_identity_id } = group;
  const link = useSignal('');
  const { is_busy, act } = useAction();
  const own_id = bearer.value?.is === 'person' ? bearer.value.identity_id : undefined;
  if (own_id === undefined) return null;
  const invite = () =>
    act(undefined, async () => {
      // Where this page is open may lead to nothing elsewhere. Not `get`, which repeats until it is answered.
      const { origins } = await callApi<Answer<typeof BOOTSTRAP, 'get'>>('GET', BOOTSTRAP);
      const { code } = await post(INVITES, { group_id }, { use_count: 1, ttl: INVITED_FOR_MS });
      link.value = `${origins.hub}${hrefOf({}, { invite: code })}`;
    });
  const kick = (identity_id: string, name: string) =>
    act(`${name} is no longer a member.`, () => post(KICK, { group_id, identity_id }, {}));
  return (
    <section class="stack" aria-label="Members">
      <h2>Members of {display_name}</h2>
      <ul class="card pad stack">
        {members.map(({ identity: { identity_id, display_name: name, account_number } }) => (
          <li key={identity_id} class="row">
            <span>
              {name} <span class="quiet">#{account_number}</span>
            </span>
            {identity_id === owner_identity_id && <span class="badge quiet">owner</span>}
            {identity_id === own_id && <span class="badge quiet">you</span>}
            {own_id === owner_identity_id && identity_id !== own_id && (
              <Confirm
                label="Remove"
                question={`Remove ${name} from ${display_name}?`}
                onConfirm={() => void kick(identity_id, name)}
              />
            )}
          </li>
        ))}
      </ul>
      <JoinRequests group={group} />
      <div class="row">
        <button type="button" disabled={is_busy.value} onClick={() => void invite()}>
          Invite someone
        </button>
        {own_id !== owner_identity_id && members.some(({ identity }) => identity.identity_id === own_id) && (
          <Confirm
            label="Leave"
            question={`Leave ${display_name}?`}
            class="danger"
            onConfirm={() => void act(`You have left ${display_name}.`, () => post(LEAVE, { group_id }, {}))}
          >
            <p>You no longer see its games. To come back, you need a new invitation.</p>
          </Confirm>
        )}
      </div>
      {link.value !== '' && (
        <div class="stack">
          <p>For a week, the first person who opens this link, logged in here, and joins becomes a member:</p>
          <Copyable text={link.value} />
        </div>
      )}
    </section>
  );
}

/** People who ask to become members, for the owner. */
function JoinRequests({ group: { group_id, join_requests } }: { group: Group }) {
  const { is_busy, act } = useAction();
  if (join_requests.length === 0) return null;
  const resolve = (identity_id: string, resolution: boolean) =>
    act(resolution ? 'The person is a member now.' : 'The request was declined.', () =>
      post(RESOLVE, { group_id, identity_id }, { resolution }),
    );
  return (
    <ul class="card pad stack" aria-label="Join requests">
      {join_requests.map(({ identity: { identity_id, display_name, account_number } }) => (
        <li key={identity_id} class="row">
          <span>
            {display_name} <span class="quiet">#{account_number} asks to join</span>
          </span>
          <button type="button" class="small" disabled={is_busy.value} onClick={() => void resolve(identity_id, true)}>
            Accept
          </button>
          <button type="button" class="small" disabled={is_busy.value} onClick={() => void resolve(identity_id, false)}>
            Decline
          </button>
        </li>
      ))}
    </ul>
  );
}
