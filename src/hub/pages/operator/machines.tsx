import { useSignal } from '@preact/signals';
import { MINUTE_MS } from '../../../shared/units.ts';
import { useAction } from '../../data/actions.ts';
import { type Answer, put, remove } from '../../data/api.ts';
import { shortId } from '../../data/namespaces.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { TextField } from '../../parts/fields.tsx';
import { Polled } from '../../parts/polled.tsx';
import { Section } from '../../parts/section.tsx';
import { Table } from '../../parts/table.tsx';
import { Age } from '../../parts/time.tsx';

const MACHINES = '/cloud/machines';
const DRAIN = '/cloud/machines/{machine_id}/drain';
/** Machines cannot be watched: their heartbeats change all the time. */
const REFRESH_MS = 5_000;
/** The longest time that a drain may take: a week. */
const MINUTES_MAX = 10_080;

type Machine = Answer<typeof MACHINES, 'get'>['machines'][number];

const TONES: Record<Machine['state'], string> = {
  up: 'good',
  late: 'warn',
  resting: 'quiet',
  stopped: 'quiet',
  lost: 'bad',
};

/** The machines of all processes on the database, and what runs on each. */
export function Machines() {
  return (
    <Section title="Machines">
      <Polled path={MACHINES} every_ms={REFRESH_MS}>
        {({ machines }, again) => (
          <Table heads={['Machine', 'State', 'Last heartbeat', 'Servers', 'Lobbies', 'Players', '.Actions']}>
            {machines.map((machine) => (
              <MachineRow key={machine.machine_id} machine={machine} onChange={again} />
            ))}
          </Table>
        )}
      </Polled>
    </Section>
  );
}

function MachineRow({ machine, onChange }: { machine: Machine; onChange(): Promise<void> }) {
  const { machine_id, host, state, last_beat_ts, servers, lobbies, players, drain } = machine;
  return (
    <tr>
      <td>
        {host} <span class="mono quiet">{shortId(machine_id)}</span>
      </td>
      <td>
        <span class={`badge ${TONES[state]}`}>{state}</span>{' '}
        {drain && <span class="badge warn">{drain.is_complete ? 'drained' : 'draining'}</span>}
      </td>
      <td>
        <Age of={last_beat_ts} />
      </td>
      <td>{servers}</td>
      <td>{lobbies}</td>
      <td>{players}</td>
      <td>
        {drain ? <EndDrain machine={machine} onChange={onChange} /> : <Drain machine={machine} onChange={onChange} />}
      </td>
    </tr>
  );
}

interface DrainProps {
  machine: Machine;
  onChange(): Promise<void>;
}

function Drain({ machine: { machine_id, host, state }, onChange }: DrainProps) {
  const minutes = useSignal('30');
  const { is_busy, act } = useAction();
  const drain = () =>
    act(`${host} takes no new servers.`, async () => {
      await put(DRAIN, { machine_id }, { deadline_ms: Number(minutes.value) * MINUTE_MS });
      await onChange();
    });
  if (state === 'stopped' || state === 'lost') return null;
  return (
    <Confirm
      label="Drain"
      subject={host}
      question={`Drain ${host}?`}
      is_disabled={is_busy.value}
      class="small"
      onConfirm={() => void drain()}
    >
      <p>
        It gets no new servers. Each lobby ends when it is empty. After this time, everything left ends, servers without
        a lobby included.
      </p>
      <TextField label="Minutes" value={minutes} max={MINUTES_MAX} is_required />
    </Confirm>
  );
}

function EndDrain({ machine: { machine_id, host }, onChange }: DrainProps) {
  const { is_busy, act } = useAction();
  const end = () =>
    act(`${host} takes new servers again.`, async () => {
      await remove(DRAIN, { machine_id });
      await onChange();
    });
  return (
    <button
      type="button"
      class="small"
      aria-label={`End drain of ${host}`}
      disabled={is_busy.value}
      onClick={() => void end()}
    >
      End drain
    </button>
  );
}
