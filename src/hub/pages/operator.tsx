import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useAction } from '../data/actions.ts';
import { type Answer, put, remove } from '../data/api.ts';
import { useTitle } from '../data/live.ts';
import { shortId } from '../data/places.ts';
import { useReading } from '../data/reading.ts';
import { Confirm } from '../parts/confirm.tsx';
import { TextField } from '../parts/fields.tsx';
import { Notice } from '../parts/notice.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Age } from '../parts/time.tsx';
import { Attention } from './attention.tsx';
import { AuditLog } from './audit-log.tsx';

const MACHINES = '/cloud/machines';
const DRAIN = '/cloud/machines/{machine_id}/drain';
const AGAIN_MS = 5_000;
const MINUTE_MS = 60_000;

type Machine = Answer<typeof MACHINES, 'get'>['machines'][number];

const TONES: Record<Machine['state'], string> = {
  up: 'good',
  late: 'warn',
  resting: 'quiet',
  stopped: 'quiet',
  lost: 'bad',
};

/** What an administrator operates: machines and what runs on them, what needs attention, and who changed what. */
export function OperatorPage() {
  useTitle(() => 'Operator · Muster');
  const { read, again } = useReading(MACHINES, {});
  useEffect(() => {
    // Machines cannot be watched: their beats change all the time.
    const timer = setInterval(() => void again(), AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  if (read.value === undefined) return <p class="quiet">Loading …</p>;
  if (read.value instanceof Error) return <Notice error={read.value} />;
  return (
    <>
      <div class="head">
        <h1>Operator</h1>
      </div>
      <Attention games={[]} />
      <section class="stack" aria-label="Machines">
        <h2>Machines</h2>
        <Scroll>
          <table>
            <thead>
              <tr>
                <th>Machine</th>
                <th>State</th>
                <th>Last beat</th>
                <th>Servers</th>
                <th>Lobbies</th>
                <th>Players</th>
                <th>
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {read.value.machines.map((machine) => (
                <MachineRow key={machine.machine_id} machine={machine} onChange={again} />
              ))}
            </tbody>
          </table>
        </Scroll>
      </section>
      <section class="stack" aria-label="Changes">
        <h2>Changes</h2>
        <AuditLog path="/cloud/audit-log" parameters={{}} />
      </section>
    </>
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
      question={`Drain ${host}?`}
      is_disabled={is_busy.value}
      class="small"
      onConfirm={() => void drain()}
    >
      <p>It gets no new servers. Its lobbies end when they are empty, and at the latest after this time.</p>
      <TextField label="Minutes" value={minutes} is_number is_required />
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
    <button type="button" class="small" disabled={is_busy.value} onClick={() => void end()}>
      End drain
    </button>
  );
}
