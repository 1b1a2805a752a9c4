import { useSignal } from '@preact/signals';
import { showOutcome, useAction } from '../../data/actions.ts';
import { post } from '../../data/api.ts';
import { bearer, may_act } from '../../data/bearer.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { Refused } from '../../data/request.ts';
import { callApiAs } from '../../data/session.ts';
import { readToken } from '../../data/tokens.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Copyable } from '../../parts/copyable.tsx';
import { Dialog, useDialog } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/section.tsx';
import { momentOf } from '../../parts/time.tsx';

const PUBLIC = '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public';
const CLOUD = '/cloud/games/{game_id}/tokens/cloud';
const SERVICE = '/games/{game_id}/environments/{environment_id}/tokens/service';
/**
 * Labels of the tokens whose revocation the service checks in each request. Other tokens end with what they are for, such as
 * a lobby.
 */
const REVOCABLE = ['usr', 'cloud', 'env_svc', 'share'];
const REVOKE = '/cloud/games/{game_id}/tokens/revoke';

/** Creates tokens, says what a token is, and revokes those of the game, with its share links. */
export function Tokens({ onRevoke }: { onRevoke(): Promise<void> }) {
  const { scope, environment } = useNamespace();
  const { game_id } = scope;
  return (
    <Section title="Tokens">
      {may_act.value && (
        <div class="row">
          <NewToken label="New public token" text="For your game's clients." make={() => post(PUBLIC, scope, {})} />
          <NewToken
            label="New cloud token"
            text="For tools that act for the game. Keep it secret."
            make={() => post(CLOUD, { game_id }, {})}
          />
          <NewToken
            label="New service token"
            text="For a back end that starts servers here. Keep it secret."
            make={() => post(SERVICE, environment, {})}
          />
          {bearer.value?.is === 'person' && <RevokeTokens onRevoke={onRevoke} />}
        </div>
      )}
      <WhatIsIt />
    </Section>
  );
}

interface NewTokenProps {
  label: string;
  /** What it is for. */
  text: string;
  make(): Promise<{ token: string }>;
}

/** A button that creates a token and shows it once. */
function NewToken({ label, text, make }: NewTokenProps) {
  const dialog = useDialog();
  const token = useSignal('');
  const { act } = useAction();
  const create = () =>
    act(undefined, async () => {
      const { token: made } = await make();
      if (dialog.open()) token.value = made;
      else
        showOutcome({ done: 'A token was created after you left the page, so it was not shown. Create another one.' });
    });
  const forget = () => {
    token.value = '';
  };
  return (
    <>
      {/* It is not disabled meanwhile, so that it has the focus again after the dialog. */}
      <button type="button" onClick={() => void create()}>
        {label}
      </button>
      <Dialog of={dialog} title={label} onClose={forget}>
        <p>{text} It is not shown again.</p>
        <Copyable text={token.value} />
        <form method="dialog">
          <button type="submit">Done</button>
        </form>
      </Dialog>
    </>
  );
}

function RevokeTokens({ onRevoke }: { onRevoke(): Promise<void> }) {
  const { game, scope } = useNamespace();
  const { is_busy, act } = useAction();
  const revoke = () =>
    act('All cloud and service tokens and share links of the game are revoked.', async () => {
      await post(REVOKE, { game_id: scope.game_id }, {});
      await onRevoke();
    });
  return (
    <Confirm
      label="Revoke all"
      question={`Revoke all cloud and service tokens and share links of ${game.display_name}?`}
      is_disabled={is_busy.value}
      class="danger"
      onConfirm={() => void revoke()}
    >
      <p>
        Tools and back ends with one are refused from now on, and the game's share links show nothing any more. Game
        servers and players keep their access.
      </p>
    </Confirm>
  );
}

/** Says what a pasted token is, and whether the service accepts it. */
function WhatIsIt() {
  const token = useSignal('');
  const judged = useSignal({ token: '', verdict: '' });
  const { is_busy, act } = useAction();
  const claims = readToken(token.value);
  const ask = (event: Event) => {
    event.preventDefault();
    const asked = token.value;
    void act(undefined, async () => {
      judged.value = { token: asked, verdict: await judge(asked.trim(), claims?.label) };
    });
  };
  return (
    <form class="card pad stack" onSubmit={ask}>
      <div class="row filters">
        <TextField label="What is this token?" value={token} placeholder="paste it" is_required />
        <button type="submit" disabled={is_busy.value}>
          Ask the service
        </button>
      </div>
      {token.value !== '' && !claims && <p class="quiet">This is not a Muster token.</p>}
      {claims && (
        <Facts
          of={[
            ['Kind', claims.kind],
            ['Issued', momentOf(claims.issued_at)],
            ['Expires', momentOf(claims.expires_at)],
            judged.value.token === token.value && ['Service', judged.value.verdict],
          ]}
        />
      )}
    </form>
  );
}

/** Returns what the service says of a token, in words. */
async function judge(token: string, label: string | undefined): Promise<string> {
  try {
    await callApiAs(token, 'GET', '/cloud/auth/inspect');
    return 'accepts it';
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // Tokens of other kinds are verified before their kind is refused.
    if (error.code !== 'CLAIMS_MISSING_ENTITLEMENT') return `refuses it: ${error.message}`;
    return label !== undefined && REVOCABLE.includes(label)
      ? 'accepts it'
      : 'it is valid. Whether the lobby, seat or other thing that it is for still exists was not checked.';
  }
}
