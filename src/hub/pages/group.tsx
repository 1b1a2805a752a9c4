import type { Answer } from '../data/api.ts';
import { useLive, useTitle } from '../data/live.ts';
import { Figures } from '../parts/figures.tsx';
import { RefusedPage } from './refused.tsx';
import { Members } from './settings-members.tsx';

const PROFILE = '/group/groups/{group_id}/profile';

/** The profile of a group, to which `external.profile` of the API leads. */
export function GroupPage({ group_id }: { group_id: string }) {
  const live = useLive(PROFILE, { group_id }).value;
  if (live.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (live.is === 'refused') return <RefusedPage error={live.error} what="group" />;
  return <Profile group={live.body.group} />;
}

function Profile({ group }: { group: Answer<typeof PROFILE, 'get'>['group'] }) {
  useTitle(() => `${group.display_name} · Muster`);
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
