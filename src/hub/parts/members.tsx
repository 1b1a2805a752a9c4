import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useAction } from '../data/actions.ts';
import { type Answer, post } from '../data/api.ts';
import { bearer } from '../data/bearer.ts';
import { NEW_PERSON, prepareInvitationLinks } from '../data/invitations.ts';
import { Confirm } from './confirm.tsx';
import { Copyable } from './copyable.tsx';

const INVITES = '/group/groups/{group_id}/invites';
const RESOLVE = '/group/groups/{group_id}/join-request/{identity_id}';
const LEAVE = '/group/groups/{group_id}/leave';
const KICK = '/group/groups/{group_id}/kick/{identity_id}';

const INVITED_FOR_MS = 7 * 24 * 3_600_000;
/** What a membership takes with it when it ends. */
const ENDS_WITH_MEMBERSHIP =
  "All cloud and service tokens and share links of the group's games are revoked, so tools and back ends need new tokens. " +
  'Invitations that no one has used yet end, too.';

type Group = Answer<'/group/groups/{group_id}/profile', 'get'>['group'];
type Identity = Group['members'][number]['identity'];

/** The members of the group that owns the game. Every member can invite people; the owner can remove members. */
export function Members({ group }: { group: Group }) {
  const { group_id, display_name, members, owner_identity_id } = group;
  const link = useSignal('');
  const { is_busy, act } = useAction();
  const own_id = bearer.value?.is === 'person' ? bearer.value.identity_id : undefined;
  const invite = () =>
    act(undefined, async () => {
      const linkOf = await prepareInvitationLinks(group_id);
      const { code } = await post(INVITES, { group_id }, { use_count: 1, ttl: INVITED_FOR_MS });
      link.value = linkOf(code);
    });
  const member_ids = members.map(({ identity }) => identity.identity_id).join(' ');
  useEffect(() => {
    // The invitation was used, or has ended with the access of someone who left.
    link.value = '';
  }, [member_ids]);
  if (own_id === undefined) return null;
  return (
    <section class="stack" aria-label="Members">
      <h2>Members of {display_name}</h2>
      <ul class="card pad stack">
        {members.map(({ identity }) => (
          <MemberRow key={identity.identity_id} identity={identity} group={group} own_id={own_id} />
        ))}
      </ul>
      <JoinRequests group={group} />
      <div class="row">
        <button type="button" disabled={is_busy.value} onClick={() => void invite()}>
          Invite someone
        </button>
        {own_id !== owner_identity_id && members.some(({ identity }) => identity.identity_id === own_id) && (
          <Leave group={group} />
        )}
      </div>
      {link.value !== '' && (
        <div class="stack">
          <p>
            For a week, the first person who opens this link and joins becomes a member.{' '}
            {link.value.includes(NEW_PERSON)
              ? 'Someone who has no token yet gets one there:'
              : 'The group has no game yet, so only someone who has a token can join:'}
          </p>
          <Copyable text={link.value} />
        </div>
      )}
    </section>
  );
}

interface MemberRowProps {
  identity: Identity;
  group: Group;
  /** The person who looks at it. */
  own_id: string;
}

function MemberRow({ identity, group, own_id }: MemberRowProps) {
  const { identity_id, display_name: name, account_number } = identity;
  const { group_id, display_name, owner_identity_id } = group;
  const { is_busy, act } = useAction();
  const kick = () => act(`${name} is no longer a member.`, () => post(KICK, { group_id, identity_id }, {}));
  return (
    <li class="row">
      <span>
        {name} <span class="quiet">#{account_number}</span>
      </span>
      {identity_id === owner_identity_id && <span class="badge quiet">owner</span>}
      {identity_id === own_id && <span class="badge quiet">you</span>}
      {own_id === owner_identity_id && identity_id !== own_id && (
        <Confirm
          label="Remove"
          subject={`${name} #${account_number}`}
          question={`Remove ${name} from ${display_name}?`}
          is_disabled={is_busy.value}
          onConfirm={() => void kick()}
        >
          <p>{ENDS_WITH_MEMBERSHIP}</p>
        </Confirm>
      )}
    </li>
  );
}

function Leave({ group: { group_id, display_name } }: { group: Group }) {
  const { is_busy, act } = useAction();
  const leave = () => act(`You have left ${display_name}.`, () => post(LEAVE, { group_id }, {}));
  return (
    <Confirm
      label="Leave"
      question={`Leave ${display_name}?`}
      is_disabled={is_busy.value}
      class="danger"
      onConfirm={() => void leave()}
    >
      <p>You no longer see its games. To come back, you need a new invitation. {ENDS_WITH_MEMBERSHIP}</p>
    </Confirm>
  );
}

/** People who ask to become members, for the owner. */
function JoinRequests({ group: { group_id, join_requests } }: { group: Group }) {
  if (join_requests.length === 0) return null;
  return (
    <ul class="card pad stack" aria-label="Join requests">
      {join_requests.map(({ identity }) => (
        <JoinRequestRow key={identity.identity_id} identity={identity} group_id={group_id} />
      ))}
    </ul>
  );
}

function JoinRequestRow({ identity, group_id }: { identity: Identity; group_id: string }) {
  const { identity_id, display_name, account_number } = identity;
  const { is_busy, act } = useAction();
  const resolve = (resolution: boolean) =>
    act(resolution ? 'The person is a member now.' : 'The request was declined.', () =>
      post(RESOLVE, { group_id, identity_id }, { resolution }),
    );
  const buttonOf = (label: string, resolution: boolean) => (
    <button
      type="button"
      class="small"
      aria-label={`${label} ${display_name} #${account_number}`}
      disabled={is_busy.value}
      onClick={() => void resolve(resolution)}
    >
      {label}
    </button>
  );
  return (
    <li class="row">
      <span>
        {display_name} <span class="quiet">#{account_number} asks to join</span>
      </span>
      {buttonOf('Accept', true)}
      {buttonOf('Decline', false)}
    </li>
  );
}
