import type { Answer } from '../data/api.ts';
import { useTitle, useWatched } from '../data/watched.ts';
import { RefusedPage } from '../parts/refused.tsx';

const PROFILE = '/identity/identities/{identity_id}/profile';

/** The profile of a person or guest, to which `external.profile` of the API leads. */
export function PersonPage({ identity_id }: { identity_id: string }) {
  const watched = useWatched(PROFILE, { identity_id }).value;
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <RefusedPage error={watched.error} what="person" />;
  return <Profile person={watched.body.identity} />;
}

function Profile({ person }: { person: Answer<typeof PROFILE, 'get'>['identity'] }) {
  const { display_name, account_number, avatar_url, bio } = person;
  useTitle(display_name);
  return (
    <>
      <div class="row">
        {/* By its path, because the page may be open at another host of the service. */}
        <img src={new URL(avatar_url).pathname} width={48} height={48} alt="" />
        <h1>{display_name}</h1>
        <span class="quiet">#{account_number}</span>
      </div>
      {bio !== '' && <p class="lines">{bio}</p>}
    </>
  );
}
