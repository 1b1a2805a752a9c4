import { useSignal } from '@preact/signals';
import { showOutcome, useAction } from '../data/actions.ts';
import { post } from '../data/api.ts';
import { may_act } from '../data/bearer.ts';
import { useNamespace } from '../data/namespaces.ts';
import { Copyable } from './copyable.tsx';
import { Dialog, useDialog } from './dialog.tsx';

const SHARES = '/cloud/games/{game_id}/namespaces/{namespace_id}/shares';

/** A button that creates a link by which anyone can look at the namespace, or at one lobby. */
export function ShareButton({ lobby_id }: { lobby_id?: string }) {
  const { scope } = useNamespace();
  const dialog = useDialog();
  const url = useSignal('');
  const { act } = useAction();
  const createLink = () =>
    act(undefined, async () => {
      const made = await post(SHARES, scope, { ...(lobby_id !== undefined && { lobby_id }) });
      if (dialog.open()) url.value = made.url;
      else showOutcome({ done: 'A share link was created after you left the page. The settings list it.' });
    });
  if (!may_act.value) return null;
  return (
    <>
      {/* It is not disabled meanwhile, so that it has the focus again after the dialog. */}
      <button type="button" class={lobby_id === undefined ? '' : 'small'} onClick={() => void createLink()}>
        Share
      </button>
      <Dialog of={dialog} title="A link for anyone to look at this">
        <p>
          Anyone with the link sees {lobby_id === undefined ? 'the lobbies of this namespace' : 'this lobby'} for seven
          days, and can change nothing. You can revoke it in the settings.
        </p>
        <Copyable text={url.value} />
        <form method="dialog">
          <button type="submit">Done</button>
        </form>
      </Dialog>
    </>
  );
}
