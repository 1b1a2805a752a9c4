import { type Static, Type } from '@sinclair/typebox';
import { Uuid } from '../../../../platform/http/shapes.ts';

/** The position of a find in the queue. */
export const QueuePosition = Type.Object({
  ticket: Uuid,
  is_waiting: Type.Boolean({ description: 'False before the find waits, and when it no longer waits.' }),
  position: Type.Optional(Type.Integer({ description: '1 if the find is next.' })),
  length: Type.Optional(Type.Integer({ description: 'Number of waiting finds.' })),
});
export type QueuePosition = Static<typeof QueuePosition>;

export function toQueuePosition(
  ticket: string,
  waiting: { position: number; length: number } | undefined,
): QueuePosition {
  if (!waiting) return { ticket, is_waiting: false };
  const { position, length } = waiting;
  return { ticket, is_waiting: true, position, length };
}
