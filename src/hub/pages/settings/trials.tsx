import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useAction } from '../../data/actions.ts';
import { type Answer, post, type RequestBody } from '../../data/api.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { search } from '../../data/router.ts';
import { gameModesOf, useLiveVersion } from '../../data/versions.ts';
import { Field, TextArea, TextField } from '../../parts/fields.tsx';
import { OutboundExchange } from '../../parts/outbound-exchange.tsx';
import { Section } from '../../parts/section.tsx';

const VERIFICATION = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/verification/try';
const CAPTCHA = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/captcha/try';
/** The most players of one request. */
const PARTY_MAX = 256;
/** The most seats of a lobby. */
const SEATS_MAX = 256;
const KINDS = ['find', 'join', 'create'] as const;

type Trial = RequestBody<typeof VERIFICATION, 'post'>;
type Verdict = Answer<typeof VERIFICATION, 'post'>['verification'];
type ProviderTrial = Answer<typeof CAPTCHA, 'post'>['providers'][number];

/** Tries the servers on which seats depend: the game's own verification server, and the providers of captchas. */
export function Trials() {
  return (
    <Section title="Verification and captcha">
      <VerificationTrial />
      <CaptchaTrial />
    </Section>
  );
}

/** Asks the verification server as a request for a seat does. The address can fill in the form. */
function VerificationTrial() {
  const { scope } = useNamespace();
  const version = useLiveVersion();
  const given = search.value;
  const kind = useSignal(given.get('kind') ?? KINDS[0]);
  const game_mode = useSignal(given.get('game_mode') ?? '');
  const lobby_id = useSignal(given.get('lobby_id') ?? '');
  const tags = useSignal(given.get('tags') ?? '');
  const players = useSignal(given.get('players') ?? '');
  const max_players = useSignal(given.get('max_players') ?? '');
  const data = useSignal('');
  const verdict = useSignal<Verdict | undefined>(undefined);
  const { is_busy, act } = useAction();
  const modes = Object.keys(gameModesOf(version));
  useEffect(() => {
    if (game_mode.value === '') game_mode.value = modes[0] ?? '';
  }, [version]);
  const is_read = version !== undefined && !(version instanceof Error);
  // That of the request stays chosen, so that the form asks for nothing else than it says.
  const is_missing = is_read && game_mode.value !== '' && !modes.includes(game_mode.value);
  const mode_options = modes.map((mode): [string, string] => [mode, mode]);
  if (is_missing) mode_options.push([game_mode.value, `${game_mode.value} (not in the live version)`]);
  const ask = (event: Event) => {
    event.preventDefault();
    void act(undefined, async () => {
      verdict.value = undefined;
      const trial: Trial = {
        kind: KINDS.find((one) => one === kind.value) ?? 'find',
        game_mode: game_mode.value,
        ...(lobby_id.value !== '' && { lobby_id: lobby_id.value.trim() }),
        ...(tags.value.trim() !== '' && { tags: readJson(tags.value, 'The tags') as Record<string, string> }),
        ...(data.value.trim() !== '' && { verification_data: readJson(data.value, 'The data') }),
        ...(players.value !== '' && { players: Number(players.value) }),
        ...(max_players.value !== '' && { max_players: Number(max_players.value) }),
      };
      verdict.value = (await post(VERIFICATION, scope, trial)).verification;
    });
  };
  return (
    <form class="card pad stack" aria-label="Try the verification" onSubmit={ask}>
      <p>Asks your verification server, as for a player at your address. No seat is taken.</p>
      <div class="row filters">
        <Field label="Request" value={kind} options={KINDS.map((one) => [one, one])} />
        <Field label="Game mode" value={game_mode} options={mode_options} />
        <TextField label="Lobby id, for a running lobby" value={lobby_id} />
        <TextField label="Players" value={players} max={PARTY_MAX} placeholder="1" />
        <TextField label="Seats (max_players)" value={max_players} max={SEATS_MAX} />
        <TextField label="Tags as JSON" value={tags} placeholder='{"map": "ice"}' />
      </div>
      <TextArea label="verification_data as JSON" value={data} placeholder='{"ticket": "of a player"}' />
      <div class="row">
        <button type="submit" disabled={is_busy.value}>
          Ask the verification server
        </button>
      </div>
      {verdict.value && (
        <>
          <p role="status">{verdict.value.is_accepted ? 'It accepts the player.' : 'It does not accept the player.'}</p>
          <OutboundExchange title="Verification" of={verdict.value.exchange} failure={verdict.value.failure} />
        </>
      )}
    </form>
  );
}

/** Asks the captcha providers whether they accept the keys of the version. */
function CaptchaTrial() {
  const { scope } = useNamespace();
  const origin = useSignal('');
  const providers = useSignal<ProviderTrial[] | undefined>(undefined);
  const { is_busy, act } = useAction();
  const ask = (event: Event) => {
    event.preventDefault();
    void act(undefined, async () => {
      providers.value = undefined;
      const body = origin.value.trim() === '' ? {} : { origin: origin.value.trim() };
      ({ providers: providers.value } = await post(CAPTCHA, scope, body));
    });
  };
  return (
    <form class="card pad stack" aria-label="Try the captcha" onSubmit={ask}>
      <p>Asks the captcha providers of the live version whether they accept its keys.</p>
      <div class="row filters">
        <TextField
          label="Address of the game's page, if each domain has its own keys"
          value={origin}
          placeholder="https://play.example.com"
        />
        <button type="submit" disabled={is_busy.value}>
          Ask the providers
        </button>
      </div>
      {providers.value && (
        <div class="stack" role="status">
          {providers.value.length === 0 && <p>The live version asks for no captcha.</p>}
          {providers.value.map((trial) => (
            <div key={trial.provider} class="stack">
              <p>
                {trial.provider}: {describe(trial)}
              </p>
              <OutboundExchange title={`Captcha of ${trial.provider}`} of={trial.exchange} failure={trial.reasons[0]} />
            </div>
          ))}
        </div>
      )}
    </form>
  );
}

function describe({ provider, are_keys_accepted, reasons }: ProviderTrial): string {
  if (provider === 'pow') return 'proofs of work are checked by this service, and need no keys.';
  if (are_keys_accepted === true) return 'it answers, and accepts the keys.';
  if (reasons.includes('no-keys')) return 'neither the version nor the service has keys for it.';
  const why = reasons.length > 0 ? ` (${reasons.join(', ')})` : '';
  return are_keys_accepted === false
    ? `it does not accept the keys${why}.`
    : `it did not say whether it accepts the keys${why}.`;
}

function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${what} are not valid JSON.`);
  }
}
