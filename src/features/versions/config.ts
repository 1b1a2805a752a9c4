import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { named, Uuid } from '../../platform/http/shapes.ts';
import { PORT_PROTOCOLS } from '../../platform/tokens/caller.ts';

/** Above every limit of the rules, which say by name what is too many; what is far beyond is not even looked at. */
const ENTRIES_MAX = 256;

const optional = <Shape extends TSchema>(shape: Shape) => Type.Optional(shape);
const record = <Shape extends TSchema>(shape: Shape) => named(shape, ENTRIES_MAX);
const Count = Type.Integer({ minimum: 0, maximum: 4_294_967_295 });

export const PortRange = Type.Object({ min: Count, max: Count });
export const Protocol = Type.Union(PORT_PROTOCOLS.map((protocol) => Type.Literal(protocol)));

const IdleLobbies = Type.Object({ min: Count, max: Count });

const Region = Type.Object({ tier: optional(Type.String()), idle_lobbies: optional(IdleLobbies) });
export type RegionConfig = Static<typeof Region>;

const Port = Type.Object({
  port: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
  port_range: optional(PortRange),
  protocol: optional(Protocol),
  proxy: optional(Type.Union([Type.Literal('none'), Type.Literal('game_guard')])),
  dev_port: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
  dev_port_range: optional(PortRange),
  dev_protocol: optional(Protocol),
});
export type PortConfig = Static<typeof Port>;

/** The build to run and how. The name is the contract's; any kind of build is named by `image_id`. */
const Docker = Type.Object({
  dockerfile: optional(Type.String()),
  build_args: optional(record(Type.String())),
  image: optional(Type.String()),
  image_id: optional(Uuid),
  args: optional(Type.Array(Type.String(), { maxItems: ENTRIES_MAX })),
  env: optional(record(Type.String())),
  network_mode: optional(Type.Union([Type.Literal('bridge'), Type.Literal('host')])),
  ports: optional(record(Port)),
});
export type DockerConfig = Static<typeof Docker>;

const Verification = Type.Object({ url: Type.String(), headers: optional(record(Type.String())) });

const ActionMembers = {
  enabled: Type.Boolean(),
  identity_requirement: optional(Type.Union([Type.Literal('none'), Type.Literal('guest'), Type.Literal('registered')])),
  // The specification's name, and the contract's.
  verification_config: optional(Verification),
  verification: optional(Verification),
};
const Action = Type.Object(ActionMembers);
export type ActionConfig = Static<typeof Action>;

const CreateAction = Type.Object({
  ...ActionMembers,
  enable_public: optional(Type.Boolean()),
  enable_private: optional(Type.Boolean()),
  max_lobbies_per_identity: optional(Count),
});

export type CreateActionConfig = Static<typeof CreateAction>;

/** What players do that a game mode can forbid or check. */
export const ACTIONS = ['find', 'join', 'create'] as const;

const SharedMembers = {
  regions: optional(record(Region)),
  max_players: optional(Count),
  max_players_direct: optional(Count),
  max_players_party: optional(Count),
  docker: optional(Docker),
  tier: optional(Type.String()),
  idle_lobbies: optional(IdleLobbies),
};

const GameMode = Type.Object({
  ...SharedMembers,
  listable: optional(Type.Boolean()),
  taggable: optional(Type.Boolean()),
  allow_dynamic_max_players: optional(Type.Boolean()),
  actions: optional(Type.Object({ find: optional(Action), join: optional(Action), create: optional(CreateAction) })),
});
export type GameModeConfig = Static<typeof GameMode>;

const Captcha = Type.Object({
  requests_before_reverify: Count,
  verification_ttl: Count,
  hcaptcha: optional(
    Type.Object({
      level: optional(Type.String()),
      site_key: optional(Type.String()),
      secret_key: optional(Type.String()),
    }),
  ),
  turnstile: optional(Type.Object({ site_key: Type.String(), secret_key: Type.String() })),
});
export type CaptchaConfig = Static<typeof Captcha>;

const Matchmaker = Type.Object({
  ...SharedMembers,
  game_modes: optional(record(GameMode)),
  captcha: optional(Captcha),
  dev_hostname: optional(Type.String()),
  lobby_groups: optional(Type.Array(Type.Unknown())),
});
export type MatchmakerConfig = Static<typeof Matchmaker>;

const CdnRoute = Type.Object({
  glob: Type.String(),
  priority: Type.Integer(),
  middlewares: Type.Array(
    Type.Object({
      kind: Type.Object({
        custom_headers: optional(
          Type.Object({ headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })) }),
        ),
      }),
    }),
  ),
});
export type CdnRoute = Static<typeof CdnRoute>;

/** Which site the version's namespaces show, and with which headers. */
const Cdn = Type.Object({
  build_command: optional(Type.String()),
  build_output: optional(Type.String()),
  build_env: optional(record(Type.String())),
  site_id: optional(Uuid),
  routes: optional(Type.Array(CdnRoute)),
});
export type CdnConfig = Static<typeof Cdn>;

/** What a version says of how its game is hosted; it travels and is kept in this shape. */
export const VersionConfig = Type.Object({
  scripts: optional(record(Type.String())),
  engine: optional(Type.Unknown()),
  cdn: optional(Cdn),
  matchmaker: optional(Matchmaker),
  kv: optional(Type.Object({})),
  identity: optional(Type.Unknown()),
});
export type VersionConfig = Static<typeof VersionConfig>;
