import { useSignal } from '@preact/signals';
import { showOutcome, useAction } from '../data/actions.ts';
import { may_act } from '../data/bearer.ts';
import { shortId, useHref, useNamespace } from '../data/namespaces.ts';
import { requestSeat, type Seat, seatAddress } from '../data/players.ts';
import { useUnmountSignal } from '../data/unmount-signal.ts';
import { type GameMode, gameModesOf, useGameMode, useLiveVersion } from '../data/versions.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Dialog, useDialog } from '../parts/dialog.tsx';
import { Field, TextField } from '../parts/fields.tsx';
import { Notice } from '../parts/notice.tsx';

/** The most seats that a lobby of any game mode has. */
const SEATS_MAX = 256;

/** A button that creates a lobby by hand, with a seat for its creator. */
export function NewLobby() {
  const dialog = useDialog();
  const version = useLiveVersion();
  const made = useSignal<Seat | undefined>(undefined);
  const modes = Object.fromEntries(
    Object.entries(gameModesOf(version)).filter(([, mode]) => mode.actions?.create?.enabled === true),
  );
  const reset = () => {
    made.value = undefined;
  };
  if (!may_act.value) return null;
  return (
    <>
      <button type="button" onClick={dialog.open}>
        New lobby
      </button>
      <Dialog of={dialog} title={made.value ? 'The lobby is ready' : 'Create a lobby'} onClose={reset}>
        {made.value ? (
          <NewSeat seat={made.value} />
        ) : version === undefined ? (
          <p class="quiet">Loading …</p>
        ) : version instanceof Error ? (
          <Notice error={version} />
        ) : Object.keys(modes).length === 0 ? (
          <NotEnabled />
        ) : (
          <NewLobbyForm modes={modes} onMade={(seat) => (made.value = seat)} />
        )}
        <form method="dialog">
          <button type="submit">{made.value ? 'Close' : 'Cancel'}</button>
        </form>
      </Dialog>
    </>
  );
}

function NewLobbyForm({ modes, onMade }: { modes: Record<string, GameMode>; onMade(seat: Seat): void }) {
  const { game, scope } = useNamespace();
  const mode = useGameMode(modes);
  const region = useSignal('');
  const players = useSignal('');
  const has_seats = modes[mode.value]?.allow_dynamic_max_players === true;
  const { is_busy, act } = useAction();
  const unmounted = useUnmountSignal();
  const make = async (event: Event) => {
    event.preventDefault();
    await act(undefined, async () => {
      const seat = await requestSeat(scope, '/matchmaker/lobbies/create', {
        game_mode: mode.value,
        ...(region.value !== '' && { region: region.value }),
        ...(has_seats && players.value !== '' && { max_players: Number(players.value) }),
      });
      // The user may have closed the dialog, and opened it again for another lobby.
      if (unmounted.aborted) showOutcome({ done: `Lobby ${shortId(seat.lobby.lobby_id)} was created.` });
      else onMade(seat);
    });
  };
  return (
    <form class="stack" onSubmit={(event) => void make(event)}>
      <Field label="Game mode" value={mode} options={Object.keys(modes).map((name) => [name, name])} />
      <Field
        label="Region"
        value={region}
        options={[
          ['', 'the best one'],
          ...game.available_regions.map((one): [string, string] => [one.region_name_id, one.region_display_name]),
        ]}
      />
      {has_seats && <TextField label="Seats" value={players} max={SEATS_MAX} placeholder="as the game mode says" />}
      <p class="quiet">You get a seat in it. The seat is freed if you do not connect in time.</p>
      <button type="submit" class="main" disabled={is_busy.value}>
        {is_busy.value ? 'Waiting until it is ready …' : 'Create it'}
      </button>
    </form>
  );
}

function NewSeat({ seat }: { seat: Seat }) {
  const hrefTo = useHref();
  const { lobby_id } = seat.lobby;
  const address = seatAddress(seat);
  return (
    <>
      <p>
        <a href={hrefTo({ page: 'lobbies', id: lobby_id })}>
          Lobby <span class="mono">{shortId(lobby_id)}</span>
        </a>
      </p>
      {address !== undefined && <Copyable text={address} />}
      <p class="quiet">The token of your seat:</p>
      <Copyable text={seat.player.token} />
    </>
  );
}

function NotEnabled() {
  return (
    <>
      <p>
        No game mode of the live version lets players create lobbies. Allow it in one, and deploy it; or let a find
        start one.
      </p>
      <Copyable text="actions: { create: { enabled: true } }" />
    </>
  );
}
