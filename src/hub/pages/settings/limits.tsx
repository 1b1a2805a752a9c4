import { useSignal } from '@preact/signals';
import { useAction } from '../../data/actions.ts';
import { type Answer, post } from '../../data/api.ts';
import { may_act } from '../../data/bearer.ts';
import { useNamespace } from '../../data/namespaces.ts';
import { TextField } from '../../parts/fields.tsx';
import { Section } from '../../parts/section.tsx';

const LIMITS = '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config';
/** The largest limits that the service takes. */
const LOBBIES_MAX = 32_767;
const PLAYERS_MAX = 2_147_483_647;

type Limits = Answer<'/cloud/games/{game_id}/namespaces/{namespace_id}', 'get'>['namespace']['config']['matchmaker'];

/** How many lobbies the namespace may have, and how many players a client. */
export function LimitsForm({ limits, onChange }: { limits: Limits; onChange(): Promise<void> }) {
  const { scope } = useNamespace();
  const lobbies = useSignal(String(limits.lobby_count_max));
  const players = useSignal(String(limits.max_players_per_client));
  const { is_busy, act } = useAction();
  const save = (event: Event) => {
    event.preventDefault();
    const body = { lobby_count_max: Number(lobbies.value), max_players: Number(players.value) };
    void act('The limits are set.', async () => {
      await post(LIMITS, scope, body);
      await onChange();
    });
  };
  return (
    <Section title="Limits">
      <form class="card pad row filters" onSubmit={save}>
        <TextField label="Lobbies at once" value={lobbies} max={LOBBIES_MAX} is_required />
        <TextField label="Players of one client" value={players} max={PLAYERS_MAX} is_required />
        {may_act.value && (
          <button type="submit" disabled={is_busy.value}>
            Save limits
          </button>
        )}
      </form>
    </Section>
  );
}
