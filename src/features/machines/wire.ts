import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, U32, Uuid } from '../../platform/http/shapes.ts';
import type { MachineSnapshot, MachineState } from './tables.ts';

const DEADLINE_MAX_MS = 7 * 24 * 3_600_000;

/** What runs on a machine. */
export interface Load {
  servers: number;
  lobbies: number;
  players: number;
}

/** A machine as operators see it. `late`: up, but its heartbeat is overdue. */
export interface Machine extends Omit<MachineSnapshot, 'state'> {
  state: MachineState | 'late';
  load: Load;
}

const MachineShape = Type.Object(
  {
    machine_id: Uuid,
    datacenter_id: Uuid,
    host: Type.String({ description: 'The name of its host.' }),
    state: oneOf('MachineState', ['up', 'late', 'resting', 'stopped', 'lost'], {
      description:
        '"late": its heartbeat is overdue. "resting": its process was stopped and its servers run on. "lost": it was declared lost, with its servers.',
    }),
    since_ts: Timestamp,
    last_beat_ts: Timestamp,
    servers: U32,
    lobbies: U32,
    players: U32,
    drain: Type.Optional(
      Type.Object(
        {
          since_ts: Timestamp,
          deadline_ts: Type.Optional(Timestamp),
          is_complete: Type.Boolean({ description: 'Whether no server is left.' }),
        },
        { title: 'MachineDrain', description: 'Absent unless it is being drained.' },
      ),
    ),
  },
  { title: 'Machine' },
);

export const MachinesAnswer = Type.Object({ machines: Type.Array(MachineShape) });
export const MachineAnswer = Type.Object({ machine: MachineShape });
export const DrainBody = Type.Object({
  deadline_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: DEADLINE_MAX_MS,
      description:
        'Time until the last lobbies and servers end. Absent: lobbies end when they are empty, other servers only when you end them.',
    }),
  ),
});

export function toMachine(machine: Machine): Static<typeof MachineShape> {
  const { node_id, datacenter_id, name, state, state_ts, beat_ts, drain_ts, drain_deadline_ts, load } = machine;
  return {
    machine_id: node_id,
    datacenter_id,
    host: name,
    state,
    since_ts: state_ts.toISOString(),
    last_beat_ts: beat_ts.toISOString(),
    ...load,
    ...(drain_ts && {
      drain: {
        since_ts: drain_ts.toISOString(),
        ...(drain_deadline_ts && { deadline_ts: drain_deadline_ts.toISOString() }),
        is_complete: load.servers === 0,
      },
    }),
  };
}
