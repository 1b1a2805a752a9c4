import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import type { ListedServer, Window } from './rows-store.ts';
import { STATUSES, type Status } from './tables.ts';

const FROM_MAX = 100_000;
const COUNT_MAX = 200;
const COUNT_DEFAULT = 50;

const ServerStatus = oneOf('ServerStatus', STATUSES, {
  description: 'ending: its end was requested, and it has not ended yet.',
});

export const RowsQuery = Type.Object({
  status: Type.Optional(ServerStatus),
  order: Type.Optional(oneOf('ServerOrder', ['newest', 'oldest'])),
  from: Type.Optional(Type.Integer({ minimum: 0, maximum: FROM_MAX })),
  count: Type.Optional(Type.Integer({ minimum: 0, maximum: COUNT_MAX, description: `${COUNT_DEFAULT} by default.` })),
});

const ListedServerShape = Type.Object(
  {
    server_id: Uuid,
    status: ServerStatus,
    datacenter_id: Uuid,
    build_id: Uuid,
    tags: Type.Record(Type.String(), Type.String()),
    resources: Type.Object({ cpu: Type.Integer(), memory: Type.Integer() }, { title: 'ServerRowResources' }),
    create_ts: Timestamp,
    start_ts: Type.Optional(Timestamp),
    destroy_ts: Type.Optional(Timestamp),
    end_ts: Type.Optional(Timestamp),
    exit_code: Type.Optional(Type.Integer()),
    exit_signal: Type.Optional(Type.String()),
  },
  { title: 'ListedServer' },
);

const Count = Type.Integer({ minimum: 0 });

export const RowsAnswer = Type.Object({
  row_id: Type.String({ description: 'The member of a row that identifies it.' }),
  summary: Type.Object(
    { starting: Count, running: Count, ending: Count },
    { title: 'ServerSummary', description: 'How many servers have not ended, by status.' },
  ),
  rows: Type.Optional(
    Type.Array(ListedServerShape, { description: 'The rows of the window. Absent if there are changes.' }),
  ),
  changes: Type.Optional(
    Type.Object(
      {
        removed: Type.Array(Uuid),
        placed: Type.Array(Type.Object({ at: Count, row: ListedServerShape }, { title: 'ListedServerAt' })),
      },
      { title: 'ServerChanges', description: 'What has changed since `watch_index`: see docs/watch.md.' },
    ),
  ),
});

export function toWindow({
  status,
  order = 'newest',
  from = 0,
  count = COUNT_DEFAULT,
}: Static<typeof RowsQuery>): Window {
  return { status, order, from, count };
}

export function toListedServer(server: ListedServer): Static<typeof ListedServerShape> {
  const { server_id, datacenter_id, build_id, tags, cpu, memory, exit_code, exit_signal } = server;
  const { created_at, started_at, destroyed_at, ended_at } = server;
  return {
    server_id,
    status: statusOf(server),
    datacenter_id,
    build_id,
    tags,
    resources: { cpu, memory },
    create_ts: created_at.toISOString(),
    ...(started_at && { start_ts: started_at.toISOString() }),
    ...(destroyed_at && { destroy_ts: destroyed_at.toISOString() }),
    ...(ended_at && { end_ts: ended_at.toISOString() }),
    ...(exit_code !== null && { exit_code }),
    ...(exit_signal !== null && { exit_signal }),
  };
}

function statusOf({ started_at, destroyed_at, ended_at }: ListedServer): Status {
  if (ended_at) return 'ended';
  if (destroyed_at) return 'ending';
  return started_at ? 'running' : 'starting';
}
