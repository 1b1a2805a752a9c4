import { type Static, Type } from '@sinclair/typebox';
import { U64 } from '../../platform/http/shapes.ts';

/** A file that a client is about to send. */
export const PrepareFile = Type.Object({
  path: Type.String({ minLength: 1, maxLength: 1_024, description: 'Name of the file.' }),
  content_type: Type.Optional(Type.String({ maxLength: 255 })),
  content_length: U64,
});
export type PrepareFile = Static<typeof PrepareFile>;

/** Send the file, or this part of it, by HTTP PUT to `url`. */
export const PresignedRequest = Type.Object({
  path: Type.String(),
  url: Type.String(),
  byte_offset: U64,
  content_length: U64,
});
export type PresignedRequest = Static<typeof PresignedRequest>;
