import { useSignal } from '@preact/signals';
import { run, useAction } from '../data/actions.ts';
import { createPerson, type NewPerson, readPublicToken, renamePerson } from '../data/invitations.ts';
import { logInWith } from '../data/session.ts';
import { Copyable } from '../parts/copyable.tsx';
import { TextField } from '../parts/fields.tsx';
import { Notice } from '../parts/notice.tsx';
import { momentOf } from '../parts/time.tsx';

/** Lets someone who was invited, and has no token yet, become a person of the service. */
export function NewPersonForm() {
  const public_token = readPublicToken();
  const name = useSignal('');
  const made = useSignal<NewPerson | undefined>(undefined);
  const is_named = useSignal(false);
  const failure = useSignal<Error | undefined>(undefined);
  const { is_busy, act } = useAction();
  if (public_token === undefined) {
    return (
      <div class="card pad stack">
        <h2>You are invited to a group</h2>
        <p>
          Log in below to join it. If you have no token yet, ask for a link that was made in the hub once the group has
          a game.
        </p>
      </div>
    );
  }
  const begin = (event: Event) => {
    event.preventDefault();
    void act(undefined, async () => {
      failure.value = undefined;
      try {
        // A name that was refused is corrected without making another person.
        made.value ??= await createPerson(public_token);
        await renamePerson(made.value, name.value.trim());
        is_named.value = true;
      } catch (error) {
        failure.value = error instanceof Error ? error : new Error(String(error));
      }
    });
  };
  if (made.value && is_named.value) return <Made person={made.value} />;
  return (
    <form class="card pad stack" onSubmit={begin}>
      <h2>You are invited to a group</h2>
      <p>
        If you are new here, enter the name that the others will see. If you have a token or a link of your own, log in
        below.
      </p>
      <TextField label="Your name" value={name} is_required />
      <div class="row">
        <button type="submit" class="main" disabled={is_busy.value}>
          I am new here
        </button>
      </div>
      {failure.value && <Notice error={failure.value} />}
    </form>
  );
}

/** Shows the token of a new person before it is used: nothing else leads back to that person. */
function Made({ person: { identity_token, identity_token_expire_ts } }: { person: NewPerson }) {
  return (
    <div class="card pad stack">
      <h2>Keep your token</h2>
      <p>
        It is how you log in, until {momentOf(identity_token_expire_ts)}. Keep it as you keep a password: it is not
        shown again.
      </p>
      <Copyable text={identity_token} />
      <div class="row">
        <button type="button" class="main" onClick={() => void run(undefined, () => logInWith(identity_token))}>
          Go on
        </button>
      </div>
    </div>
  );
}
