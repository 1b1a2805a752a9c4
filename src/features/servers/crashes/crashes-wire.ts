import { type Static, Type } from '@sinclair/typebox';
import { Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { describeEnd } from '../end-description.ts';
import type { CrashGroup } from './crashes-store.ts';

const CrashGroupShape = Type.Object(
  {
    summary: Type.String({ description: 'How the servers ended, in words.' }),
    exit_code: Type.Optional(Type.Integer()),
    exit_signal: Type.Optional(Type.String()),
    count: Type.Integer({ minimum: 1 }),
    last_server_id: Uuid,
    last_end_ts: Timestamp,
  },
  { title: 'CrashGroup' },
);

export const CrashesAnswer = Type.Object({
  crashes: Type.Array(CrashGroupShape, {
    description: 'The last ten ways in which servers crashed, the latest first, with how many did.',
  }),
});

export function toCrashGroup({
  count,
  last_server_id,
  last_ended_at,
  ...end
}: CrashGroup): Static<typeof CrashGroupShape> {
  const { exit_code, exit_signal } = end;
  return {
    // The loss of a machine is no crash, so it is not among these.
    summary: `The server ${describeEnd({ ...end, has_lost_machine: false })}.`,
    ...(exit_code !== null && { exit_code }),
    ...(exit_signal !== null && { exit_signal }),
    count,
    last_server_id,
    last_end_ts: last_ended_at.toISOString(),
  };
}
