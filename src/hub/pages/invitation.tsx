import { useAction } from '../data/actions.ts';
import { post } from '../data/api.ts';
import { bearer } from '../data/bearer.ts';
import { forgetInvitation } from '../data/invitations.ts';
import { useReading } from '../data/reading.ts';
import { search } from '../data/router.ts';
import { Notice } from '../parts/notice.tsx';

const INVITE = '/group/invites/{group_invite_code}';
const CONSUME = '/group/invites/{group_invite_code}/consume';

/** Asks whether to join the group of the invitation that led here. */
export function Invitation() {
  const code = search.value.get('invite') ?? '';
  if (code === '') return null;
  if (bearer.value?.is === 'game') return <OnlyForPeople />;
  return <Question key={code} code={code} />;
}

function OnlyForPeople() {
  return (
    <p class="card pad">
      You are logged in with a token of a game. To join a group, log out: this page then lets you log in as a person, or
      become one.
    </p>
  );
}

function Question({ code: group_invite_code }: { code: string }) {
  const { answer, failure } = useReading(INVITE, { group_invite_code });
  const { is_busy, act } = useAction();
  if (failure.value) return <Notice error={failure.value} />;
  if (!answer.value) return <p class="quiet">Loading …</p>;
  const { display_name } = answer.value.group;
  const join = () =>
    act(`You are a member of ${display_name}.`, async () => {
      await post(CONSUME, { group_invite_code }, {});
      forgetInvitation();
    });
  return (
    <section class="card pad stack" aria-label="Invitation">
      <h2>You are invited to {display_name}</h2>
      <p>Its members see and operate its games.</p>
      <div class="row">
        <button type="button" class="main" disabled={is_busy.value} onClick={() => void join()}>
          Join
        </button>
        <button type="button" onClick={forgetInvitation}>
          Not now
        </button>
      </div>
    </section>
  );
}
