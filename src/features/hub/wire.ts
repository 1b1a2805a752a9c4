import { type Static, Type } from '@sinclair/typebox';
import { Timestamp } from '../../platform/http/shapes.ts';

export const HubLink = Type.Object({
  url: Type.String({ description: 'The page that opens logged in. It works once.' }),
  expire_ts: Timestamp,
});
export type HubLink = Static<typeof HubLink>;

export const LogInBody = Type.Object({
  code: Type.String({ maxLength: 128, description: 'The text after `#login=` in the URL of a link.' }),
  replaces_session: Type.Optional(
    Type.Boolean({
      description:
        'Whether the link may replace the session of another bearer. By default, the request is refused with HUB_OTHER_SESSION, because anyone can send a link. The link then stays valid.',
    }),
  ),
});

export const HubToken = Type.Object({
  token: Type.Optional(Type.String({ description: 'Absent for a browser without a session.' })),
  expire_ts: Type.Optional(Timestamp),
});
export type HubToken = Static<typeof HubToken>;
