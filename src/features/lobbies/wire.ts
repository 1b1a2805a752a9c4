import { type Static, Type } from '@sinclair/typebox';
import { I32, mapOf, oneOf, Text, Uuid } from '../../platform/http/shapes.ts';
import { toUrlHost } from '../../platform/networks.ts';
import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import { Captcha } from '../captcha/wire.ts';
import { Coordinates } from '../coordinates.ts';
import type { AddressOf } from '../port-names.ts';
import { PortRange } from '../ports.ts';
import type { ServerPort } from '../servers/servers.ts';

const NAME_LENGTH_MAX = 64;
/** More than the rules allow, so that their error can name the limit. */
const TAGS_SENT_MAX = 256;
const LATENCIES_MAX = 256;
const LATENCY_MAX_MS = 60_000;

const PLAYERS_MAX = 256;

const JSON_LIMITS =
  'As in every body, it has at most 64 levels, no member named __proto__, and no text with the character zero or half a surrogate pair.';

/** When a lobby was closed last. */
export const ClosedTs = Type.Optional(
  Type.String({
    description: 'When it was closed last; absent while it is open, and if an earlier release closed it.',
  }),
);

export const Publicity = oneOf('LobbyPublicity', ['public', 'private']);

/** Members of every request for seats. */
const SeatMembers = {
  players: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PLAYERS_MAX,
      description: 'Number of seats in one lobby, for a party. The default is 1.',
    }),
  ),
  captcha: Type.Optional(Captcha),
  verification_data: Type.Optional(Type.Unknown({ description: `JSON for external verification. ${JSON_LIMITS}` })),
};

/** The maximum of MUSTER_REQUEST_TIMEOUT_MS: no request takes longer. */
const WAIT_MAX_MS = 240_000;

/** Members of a find that waits for its turn. */
const WaitMembers = {
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: WAIT_MAX_MS,
      description:
        'How long to wait for a seat, in the order of arrival, if the namespace is at its limit of lobbies and all are full. If you leave it out, such a find is refused at once.',
    }),
  ),
  ticket: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'A UUID that the client generates, to watch its position in the queue (/matchmaker/queue/TICKET).',
    }),
  ),
};

/** The position of a client, which decides the region of a request that names none. */
const PositionMembers = {
  coordinates: Type.Optional(Coordinates),
  latencies: Type.Optional(
    mapOf(
      Type.Number({ minimum: 0, maximum: LATENCY_MAX_MS, description: 'Milliseconds that the client measured.' }),
      LATENCIES_MAX,
    ),
  ),
};
const Position = Type.Object(PositionMembers);
export type Position = Static<typeof Position>;

export const FindBody = Type.Object({
  game_modes: Type.Array(Type.String({ maxLength: NAME_LENGTH_MAX }), { maxItems: 32 }),
  regions: Type.Optional(Type.Array(Type.String({ maxLength: NAME_LENGTH_MAX }), { minItems: 1, maxItems: 32 })),
  prevent_auto_create_lobby: Type.Optional(Type.Boolean()),
  tags: Type.Optional(mapOf(Text, TAGS_SENT_MAX)),
  max_players: Type.Optional(I32),
  ...WaitMembers,
  ...PositionMembers,
  ...SeatMembers,
});
export type FindBody = Static<typeof FindBody>;

export const CreateBody = Type.Object({
  game_mode: Type.String({ maxLength: NAME_LENGTH_MAX }),
  region: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX })),
  publicity: Type.Optional(Publicity),
  tags: Type.Optional(mapOf(Text, TAGS_SENT_MAX)),
  max_players: Type.Optional(I32),
  lobby_config: Type.Optional(
    Type.Unknown({
      description: `JSON of at most 16 KiB. The server of the lobby gets it in SERVICE_LOBBY_CONFIG. ${JSON_LIMITS}`,
    }),
  ),
  ...PositionMembers,
  ...SeatMembers,
});
export type CreateBody = Static<typeof CreateBody>;

const CODE_LENGTH_MAX = 16;
export const JoinBody = Type.Object({
  lobby_id: Type.Optional(Uuid),
  code: Type.Optional(
    Type.String({
      maxLength: CODE_LENGTH_MAX,
      description: 'Code of the lobby. If lobby_id is sent too, both must match.',
    }),
  ),
  ...SeatMembers,
});
export type JoinBody = Static<typeof JoinBody>;

const Port = Type.Object(
  {
    hostname: Type.String(),
    host: Type.Union([Type.String(), Type.Null()]),
    port: Type.Union([Type.Integer(), Type.Null()]),
    port_range: Type.Optional(PortRange),
    is_tls: Type.Boolean(),
  },
  { title: 'JoinPort' },
);
const Ports = Type.Record(Type.String(), Port);
const Player = Type.Object({ token: Type.String() }, { title: 'JoinPlayer' });

const JoinLobby = Type.Object(
  {
    lobby_id: Uuid,
    code: Type.Optional(Type.String({ description: 'A code by which other players can join.' })),
    region: Type.Object({ region_id: Type.String(), display_name: Type.String() }, { title: 'JoinRegion' }),
    ports: Ports,
    player: Player,
  },
  { title: 'JoinLobby' },
);

/** Specification: Lobby, player and ports. Old clients read `lobby.ports` and `lobby.player`. */
export const JoinAnswer = Type.Object({
  lobby: JoinLobby,
  ports: Ports,
  player: Player,
  players: Type.Optional(Type.Array(Player, { description: 'For a party: the token of each player.' })),
});
export type JoinAnswer = Static<typeof JoinAnswer>;

export const ClosedBody = Type.Object({ is_closed: Type.Boolean() });
export const PlayerBody = Type.Object({ player_token: Type.String({ maxLength: 8_192 }) });
const RECONNECT_MAX_MS = 600_000;
export const LeftBody = Type.Object({
  ...PlayerBody.properties,
  reconnect_within_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: RECONNECT_MAX_MS,
      description:
        'How long to keep the seat, so that the player can connect again with the same token. Do not repeat the report once the player has connected again.',
    }),
  ),
});

export function toJoinAnswer(
  lobby: { lobby_id: string; code?: string; region: { region_id: string; display_name: string } },
  ports: Static<typeof Ports>,
  [token = '', ...others]: string[],
): JoinAnswer {
  const player = { token };
  const players = [player, ...others.map((other) => ({ token: other }))];
  return { lobby: { ...lobby, ports, player }, ports, player, ...(others.length > 0 ? { players } : {}) };
}

/** Returns ports with the addresses that players connect to: of the gateway, or of the server itself, which has no TLS. */
export function toPorts(ports: Record<string, ServerPort>, addressOf: AddressOf): Static<typeof Ports> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, own]) => {
      const { public_hostname = '', public_port, port_range } = own;
      const direct = { hostname: public_hostname, port: public_port, is_tls: false };
      const { hostname, port, is_tls } = addressOf(own) ?? direct;
      return [label, toPort(hostname, port, port_range, is_tls)];
    }),
  );
}

/** Returns the ports that a development token lists. */
export function toDevelopmentPorts(hostname: string, ports: DevelopmentPort[]): Static<typeof Ports> {
  return Object.fromEntries(
    ports.map(({ label, protocol, port, port_range }) => [
      label,
      toPort(hostname, port, port_range, protocol === 'https' || protocol === 'tcp_tls'),
    ]),
  );
}

function toPort(
  hostname: string,
  port: number | undefined,
  port_range: { min: number; max: number } | undefined,
  is_tls: boolean,
): Static<typeof Port> {
  if (port_range) return { hostname, host: null, port: null, port_range, is_tls };
  return { hostname, host: port === undefined ? null : `${toUrlHost(hostname)}:${port}`, port: port ?? null, is_tls };
}
