import { type Static, Type } from '@sinclair/typebox';
import { Uuid } from '../../../platform/http/shapes.ts';

/** Where a find stands that waits for its turn. */
export const QueuePlace = Type.Object({
  ticket: Uuid,
  is_waiting: Type.Boolean({ description: 'False before it waits, and when it does not wait any more.' }),
  position: Type.Optional(Type.Integer({ description: '1: it is next.' })),
  length: Type.Optional(Type.Integer({ description: 'How many wait in all.' })),
});
export type QueuePlace = Static<typeof QueuePlace>;

export function toQueuePlace(ticket: string, standing: { position: number; length: number } | undefined): QueuePlace {
  if (!standing) return { ticket, is_waiting: false };
  const { position, length } = standing;
  return { ticket, is_waiting: true, position, length };
}
