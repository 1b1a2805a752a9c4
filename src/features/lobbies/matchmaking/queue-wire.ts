import { type Static, Type } from '@sinclair/typebox';
import { Uuid } from '../../../platform/http/shapes.ts';

/** The position of a find in the queue. */
export const QueuePlace = Type.Object({
  ticket: Uuid,
  is_waiting: Type.Boolean({ description: 'False before the find waits, and when it no longer waits.' }),
  position: Type.Optional(Type.Integer({ description: '1 if the find is next.' })),
  length: Type.Optional(Type.Integer({ description: 'Number of waiting finds.' })),
});
export type QueuePlace = Static<typeof QueuePlace>;

export function toQueuePlace(ticket: string, found: { position: number; length: number } | undefined): QueuePlace {
  if (!found) return { ticket, is_waiting: false };
  const { position, length } = found;
  return { ticket, is_waiting: true, position, length };
}
