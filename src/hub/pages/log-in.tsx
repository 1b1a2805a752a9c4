import { useSignal } from '@preact/signals';
import { useAction } from '../data/actions.ts';
import { search } from '../data/router.ts';
import { logInWith } from '../data/session.ts';
import { useTitle } from '../data/watched.ts';
import { Copyable } from '../parts/copyable.tsx';
import { LogInLayout } from '../parts/log-in-layout.tsx';
import { Notice } from '../parts/notice.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { NewPersonForm } from './new-person.tsx';

/** Says how to log in, to a browser without a session. */
export function LogInPage({ reason }: { reason?: string | undefined }) {
  const token = useSignal('');
  const failure = useSignal<Error | undefined>(undefined);
  const { is_busy, act } = useAction();
  useTitle('Log in');
  const submit = (event: Event) => {
    event.preventDefault();
    void act(undefined, async () => {
      failure.value = undefined;
      await logInWith(token.value.trim()).catch((error: Error) => {
        failure.value = error;
      });
    });
  };
  return (
    <LogInLayout>
      {reason !== undefined && <Notice error={{ message: reason }} />}
      {search.value.has('invite') && <NewPersonForm />}
      <div class="card pad stack">
        <p>Get a link that opens this page logged in. It works once.</p>
        <Copyable text={`muster open --url ${location.origin}`} />
        <p class="quiet">On the machine of the service, "muster serve" prints such a link, too.</p>
      </div>
      <form class="card pad stack" onSubmit={submit}>
        <label class="field">
          Or paste a token of yours
          <input
            type="password"
            autocomplete="off"
            required
            value={token.value}
            onInput={({ currentTarget }) => {
              token.value = currentTarget.value;
            }}
          />
        </label>
        <div class="row">
          <button type="submit" class="main" disabled={is_busy.value}>
            Log in
          </button>
        </div>
        {failure.value && <Notice error={failure.value} />}
      </form>
      <Outcome />
    </LogInLayout>
  );
}
