import { type Static, Type } from '@sinclair/typebox';
import { Uuid } from '../../platform/http/shapes.ts';

const Token = Type.String({ maxLength: 8_192 });

export const PreparedLink = Type.Object({
  device_link_id: Uuid,
  device_link_token: Type.String(),
  device_link_url: Type.String({ description: 'The page to open in a browser.' }),
  short_url: Type.String({ description: 'Leads to the same page, and fits in a line.' }),
  code: Type.String({
    description: 'Shown by the page too, so that a person can compare both.',
    examples: ['ABCD-2345'],
  }),
});
export type PreparedLink = Static<typeof PreparedLink>;

export const DeviceLink = Type.Object({
  cloud_token: Type.Optional(Type.String({ description: 'Present once the link is complete.' })),
});
export type DeviceLink = Static<typeof DeviceLink>;

export const LinkQuery = Type.Object({ device_link_token: Token });
export const CompleteBody = Type.Object({ device_link_token: Token, game_id: Uuid });
