import type { Answer } from '../data/api.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { Figures } from '../parts/figures.tsx';
import { Members } from '../parts/members.tsx';
import { RefusedPage } from '../parts/refused.tsx';

const PROFILE = '/group/groups/{group_id}/profile';

/** The profile of a group, to which `external.profile` of the API leads. */
export function GroupPage({ group_id }: { group_id: string }) {
  const watched = useWatched(PROFILE, { group_id }).value;
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <RefusedPage error={watched.error} what="group" />;
  return <Profile group={watched.body.group} />;
}

function Profile({ group }: { group: Answer<typeof PROFILE, 'get'>['group'] }) {
  useTitle(group.display_name);
  return (
    <>
      <div class="head">
        <h1>{group.display_name}</h1>
        <Figures of={[['members', group.member_count ?? group.members.length]]} />
      </div>
      {group.bio !== '' && <p class="lines">{group.bio}</p>}
      {group.is_current_identity_member && <Members group={group} />}
    </>
  );
}
