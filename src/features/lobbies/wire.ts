import { type Static, Type } from '@sinclair/typebox';
import { I32, named, oneOf, Text, Uuid } from '../../platform/http/shapes.ts';
import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import { Captcha } from '../captcha/wire.ts';
import { Coordinates } from '../coordinates.ts';
import { PortRange } from '../ports.ts';
import type { ServerPort } from '../servers/servers.ts';

const NAME_LENGTH_MAX = 64;
/** Far more than are allowed: how many these are is another question. */
const TAGS_SENT_MAX = 256;
const LATENCIES_MAX = 256;
const LATENCY_MAX_MS = 60_000;

const PLAYERS_MAX = 256;

/** What every request for seats may say. */
const SeatMembers = {
  players: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PLAYERS_MAX,
      description: 'Seats in one lobby, for players who come together; one when it is left out.',
    }),
  ),
  captcha: Type.Optional(Captcha),
  verification_data: Type.Optional(Type.Unknown({ description: 'Any JSON, for external verification.' })),
};

/** Longer than any request may take (MUSTER_REQUEST_TIMEOUT_MS). */
const WAIT_MAX_MS = 240_000;

/** What a find says that waits for its turn. */
const PatienceMembers = {
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: WAIT_MAX_MS,
      description:
        'Where the namespace has as many lobbies as it may and none has a place: how long to wait for one, in the order of arrival. Refused at once when it is left out.',
    }),
  ),
  ticket: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'A UUID that the client makes, by which it can watch its place (/matchmaker/queue/TICKET) meanwhile.',
    }),
  ),
};

/** Where a client says it is: decides the region of a request that names none. */
const WhereaboutsMembers = {
  coordinates: Type.Optional(Coordinates),
  latencies: Type.Optional(
    named(
      Type.Number({ minimum: 0, maximum: LATENCY_MAX_MS, description: 'Milliseconds that the client measured.' }),
      LATENCIES_MAX,
    ),
  ),
};
const Whereabouts = Type.Object(WhereaboutsMembers);
export type Whereabouts = Static<typeof Whereabouts>;

export const FindBody = Type.Object({
  game_modes: Type.Array(Type.String({ maxLength: NAME_LENGTH_MAX }), { maxItems: 32 }),
  regions: Type.Optional(Type.Array(Type.String({ maxLength: NAME_LENGTH_MAX }), { minItems: 1, maxItems: 32 })),
  prevent_auto_create_lobby: Type.Optional(Type.Boolean()),
  tags: Type.Optional(named(Text, TAGS_SENT_MAX)),
  max_players: Type.Optional(I32),
  ...PatienceMembers,
  ...WhereaboutsMembers,
  ...SeatMembers,
});
export type FindBody = Static<typeof FindBody>;

export const CreateBody = Type.Object({
  game_mode: Type.String({ maxLength: NAME_LENGTH_MAX }),
  region: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX })),
  publicity: Type.Optional(oneOf('LobbyPublicity', ['public', 'private'])),
  tags: Type.Optional(named(Text, TAGS_SENT_MAX)),
  max_players: Type.Optional(I32),
  lobby_config: Type.Optional(Type.Unknown({ description: 'Any JSON; the lobby finds it as SERVICE_LOBBY_CONFIG.' })),
  ...WhereaboutsMembers,
  ...SeatMembers,
});
export type CreateBody = Static<typeof CreateBody>;

const CODE_LENGTH_MAX = 16;
export const JoinBody = Type.Object({
  lobby_id: Type.Optional(Uuid),
  code: Type.Optional(
    Type.String({ maxLength: CODE_LENGTH_MAX, description: 'Code of the lobby, instead of lobby_id.' }),
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
    code: Type.Optional(Type.String({ description: 'By which others who are told it can join.' })),
    region: Type.Object({ region_id: Type.String(), display_name: Type.String() }, { title: 'JoinRegion' }),
    ports: Ports,
    player: Player,
  },
  { title: 'JoinLobby' },
);

/** Specification: Lobby, player and ports. `lobby.ports` and `lobby.player` are what old clients read. */
export const JoinAnswer = Type.Object({
  lobby: JoinLobby,
  ports: Ports,
  player: Player,
  players: Type.Optional(Type.Array(Player, { description: 'Of players who come together: a token for each.' })),
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
      description: 'Keeps the seat for as long: the same token is good once more.',
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

/** Ports as players reach them. Nothing of ours encrypts them until the gateway does. */
export function toPorts(ports: Record<string, ServerPort>): Static<typeof Ports> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, { public_hostname = '', public_port, port_range }]) => [
      label,
      toPort(public_hostname, public_port, port_range, false),
    ]),
  );
}

/** Ports as a development token lists them (field-behaviour 1.8). */
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
  const address = hostname.includes(':') ? `[${hostname}]` : hostname;
  return { hostname, host: port === undefined ? null : `${address}:${port}`, port: port ?? null, is_tls };
}
