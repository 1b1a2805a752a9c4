import { type Static, Type } from '@sinclair/typebox';
import { Uuid, WatchIndex, WatchQuery } from '../../platform/http/shapes.ts';

const Token = Type.String({ maxLength: 8_192 });

export const PreparedLink = Type.Object({
  device_link_id: Uuid,
  device_link_token: Type.String(),
  device_link_url: Type.String({ description: 'The page to open in a browser.' }),
});
export type PreparedLink = Static<typeof PreparedLink>;

const LinkMembers = {
  cloud_token: Type.Optional(Type.String({ description: 'There when the link is complete.' })),
};
const DeviceLink = Type.Object(LinkMembers);
export type DeviceLink = Static<typeof DeviceLink>;

export const LinkQuery = Type.Object({ device_link_token: Token, ...WatchQuery.properties });
export const LinkAnswer = Type.Object({ ...LinkMembers, watch: WatchIndex });
export const CompleteBody = Type.Object({ device_link_token: Token, game_id: Uuid });
