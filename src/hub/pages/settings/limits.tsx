import { useSignal } from '@preact/signals';
import { useAction } from '../../data/actions.ts';
import { type Answer, post, toPath } from '../../data/api.ts';
import { may_act } from '../../data/bearer.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { callApi } from '../../data/session.ts';
import { TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/section.tsx';

const NAMESPACE = '/cloud/games/{game_id}/namespaces/{namespace_id}';
const LIMITS = '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config';
/** The largest limits that the service takes. */
const LOBBIES_MAX = 32_767;
const PLAYERS_MAX = 2_147_483_647;

type Settings = Answer<typeof NAMESPACE, 'get'>;
type Limits = Settings['namespace']['config']['matchmaker'];

/** How many lobbies the namespace may have, and how many players one address. */
export function LimitsForm({ limits, onChange }: { limits: Limits; onChange(): Promise<void> }) {
  const { scope } = useNamespace();
  const lobbies = useSignal(String(limits.lobby_count_max));
  const players = useSignal(String(limits.max_players_per_client));
  /** What the fields showed before the user changed them. */
  const shown = useSignal(limits);
  const { is_busy, act } = useAction();
  const save = (event: Event) => {
    event.preventDefault();
    void act('The limits are set.', async () => {
      // The request sets both limits. One that the user left alone may have been changed by someone else meanwhile.
      const { namespace } = await callApi<Settings>('GET', toPath(NAMESPACE, scope));
      const present = namespace.config.matchmaker;
      const wanted = {
        lobby_count_max: changed(lobbies.value, shown.value.lobby_count_max) ?? present.lobby_count_max,
        max_players: changed(players.value, shown.value.max_players_per_client) ?? present.max_players_per_client,
      };
      await post(LIMITS, scope, wanted);
      shown.value = { ...present, lobby_count_max: wanted.lobby_count_max, max_players_per_client: wanted.max_players };
      lobbies.value = String(wanted.lobby_count_max);
      players.value = String(wanted.max_players);
      await onChange();
    });
  };
  return (
    <Section title="Limits">
      <form class="card pad stack" onSubmit={save}>
        <div class="row filters">
          <TextField label="Lobbies at once" value={lobbies} max={LOBBIES_MAX} is_required />
          <TextField label="Players of one address" value={players} max={PLAYERS_MAX} is_required />
          {may_act.value && (
            <button type="submit" disabled={is_busy.value}>
              Save limits
            </button>
          )}
        </div>
        <p class="quiet">A new number of players is also the limit for addresses of VPNs, proxies, Tor and hosting.</p>
      </form>
    </Section>
  );
}

/** Returns the number in a field; undefined if it is the one that the field showed first. */
function changed(text: string, shown: number): number | undefined {
  return Number(text) === shown ? undefined : Number(text);
}
