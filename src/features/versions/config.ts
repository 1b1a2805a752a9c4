import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Empty, I32, mapOf, oneOf, U32, Uuid } from '../../platform/http/shapes.ts';
import { NetworkMode, PortRange, Protocol } from '../ports.ts';

/** More than the rules allow, so that their errors can name the limits. Longer lists are refused unread. */
const ENTRIES_MAX = 256;
const TEXT_LENGTH_MAX = 4_096;

const optional = <Shape extends TSchema>(shape: Shape) => Type.Optional(shape);
const record = <Shape extends TSchema>(shape: Shape) => mapOf(shape, ENTRIES_MAX);
const list = <Shape extends TSchema>(shape: Shape) => Type.Array(shape, { maxItems: ENTRIES_MAX });
const Text = Type.String({ maxLength: TEXT_LENGTH_MAX });

const IdleLobbies = Type.Object({ min: U32, max: U32 }, { title: 'IdleLobbies' });

const Region = Type.Object({ tier: optional(Text), idle_lobbies: optional(IdleLobbies) }, { title: 'RegionConfig' });
export type RegionConfig = Static<typeof Region>;

const Port = Type.Object(
  {
    port: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
    port_range: optional(PortRange),
    protocol: optional(Protocol),
    proxy: optional(oneOf('PortProxy', ['none', 'game_guard'])),
    presence: optional(
      oneOf('PortPresence', ['server', 'gateway'], {
        description: 'What checks the tokens of players at this port and reports them: the server, or the gateway.',
      }),
    ),
    dev_port: optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
    dev_port_range: optional(PortRange),
    dev_protocol: optional(Protocol),
  },
  { title: 'PortConfig' },
);
export type PortConfig = Static<typeof Port>;

/** The build to run and how. `docker` is the name in the reference API; `image_id` is a build of any kind. */
const Docker = Type.Object(
  {
    dockerfile: optional(Text),
    build_args: optional(record(Text)),
    image: optional(Text),
    image_id: optional(Uuid),
    args: optional(list(Text)),
    env: optional(record(Text)),
    network_mode: optional(NetworkMode),
    ports: optional(record(Port)),
  },
  { title: 'DockerConfig' },
);
export type DockerConfig = Static<typeof Docker>;

const Verification = Type.Object(
  {
    url: Text,
    headers: optional(record(Text)),
    secret: optional(
      Type.String({
        maxLength: TEXT_LENGTH_MAX,
        description: 'Signs the requests by Standard Webhooks: "whsec_" and 24 to 64 bytes in base64.',
      }),
    ),
  },
  { title: 'VerificationConfig' },
);
export type VerificationConfig = Static<typeof Verification>;

const ActionMembers = {
  enabled: Type.Boolean(),
  identity_requirement: optional(oneOf('IdentityRequirement', ['none', 'guest', 'registered'])),
  // The first name is the specification's, the second the reference API's.
  verification_config: optional(Verification),
  verification: optional(Verification),
};
const Action = Type.Object(ActionMembers, { title: 'ActionConfig' });
export type ActionConfig = Static<typeof Action>;

const CreateAction = Type.Object(
  {
    ...ActionMembers,
    enable_public: optional(Type.Boolean()),
    enable_private: optional(Type.Boolean()),
    max_lobbies_per_identity: optional(U32),
  },
  { title: 'CreateActionConfig' },
);

export type CreateActionConfig = Static<typeof CreateAction>;

/** Actions of players that a game mode can forbid or verify. */
export const ACTIONS = ['find', 'join', 'create'] as const;

const SharedMembers = {
  regions: optional(record(Region)),
  max_players: optional(U32),
  max_players_direct: optional(U32),
  max_players_party: optional(U32),
  docker: optional(Docker),
  tier: optional(Text),
  idle_lobbies: optional(IdleLobbies),
};

const GameMode = Type.Object(
  {
    ...SharedMembers,
    listable: optional(Type.Boolean()),
    taggable: optional(Type.Boolean()),
    allow_dynamic_max_players: optional(Type.Boolean()),
    actions: optional(
      Type.Object(
        { find: optional(Action), join: optional(Action), create: optional(CreateAction) },
        { title: 'ActionsConfig' },
      ),
    ),
  },
  { title: 'GameModeConfig' },
);
export type GameModeConfig = Static<typeof GameMode>;

const Hostnames = Type.Array(Type.String({ maxLength: 253 }), {
  maxItems: 32,
  description:
    'Hosts on which a captcha may be solved, with their subdomains. If you leave it out, the provider decides.',
});
const Captcha = Type.Object(
  {
    requests_before_reverify: U32,
    verification_ttl: U32,
    hcaptcha: optional(
      Type.Object(
        {
          // Only in older configurations, which use the service's own keys.
          level: optional(Text),
          site_key: optional(Text),
          secret_key: optional(Text),
          hostnames: optional(Hostnames),
        },
        { title: 'HcaptchaConfig' },
      ),
    ),
    turnstile: optional(
      Type.Object(
        {
          site_key: optional(Text),
          secret_key: optional(Text),
          // Only in older configurations, which have a key for each domain of the game.
          domains: optional(record(Type.Object({ secret_key: Text }, { title: 'TurnstileDomain' }))),
          hostnames: optional(Hostnames),
        },
        { title: 'TurnstileConfig' },
      ),
    ),
    pow: optional(
      Type.Object(
        {
          difficulty: optional({
            ...U32,
            description: 'How many keys a client derives on average (PBKDF2 with 5,000 rounds). The default is 500.',
          }),
        },
        { title: 'ProofOfWorkConfig' },
      ),
    ),
  },
  { title: 'CaptchaConfig' },
);
export type CaptchaConfig = Static<typeof Captcha>;

const Matchmaker = Type.Object(
  {
    ...SharedMembers,
    game_modes: optional(record(GameMode)),
    captcha: optional(Captcha),
    dev_hostname: optional(Text),
    lobby_groups: optional(list(Type.Unknown())),
  },
  { title: 'MatchmakerConfig' },
);
export type MatchmakerConfig = Static<typeof Matchmaker>;

const CustomHeaders = Type.Object(
  { headers: list(Type.Object({ name: Text, value: Text }, { title: 'CustomHeader' })) },
  { title: 'CustomHeaders' },
);
const CdnMiddlewareKind = Type.Object({ custom_headers: optional(CustomHeaders) }, { title: 'CdnMiddlewareKind' });
const CdnRoute = Type.Object(
  {
    glob: Text,
    priority: I32,
    middlewares: list(Type.Object({ kind: CdnMiddlewareKind }, { title: 'CdnMiddleware' })),
  },
  { title: 'CdnRoute' },
);
export type CdnRoute = Static<typeof CdnRoute>;

/** The site that the version's namespaces show, and its headers. */
const Cdn = Type.Object(
  {
    build_command: optional(Text),
    build_output: optional(Text),
    build_env: optional(record(Text)),
    site_id: optional(Uuid),
    routes: optional(list(CdnRoute)),
  },
  { title: 'CdnConfig' },
);
export type CdnConfig = Static<typeof Cdn>;

const EXAMPLE = {
  cdn: { site_id: '6a8f5d50-0e64-5b43-8bd4-2d3837910732', routes: [] },
  matchmaker: {
    game_modes: {
      deathmatch: {
        max_players: 16,
        regions: { frankfurt: {} },
        docker: {
          image_id: '4715264b-f710-5bc3-bd0c-60cd30cc2e79',
          network_mode: 'host',
          ports: { game: { port: 7_777, protocol: 'udp' } },
        },
      },
    },
  },
};

/** The configuration of a version, as sent and stored. */
export const VersionConfig = Type.Object(
  {
    scripts: optional(record(Text)),
    engine: optional(Type.Unknown()),
    cdn: optional(Cdn),
    matchmaker: optional(Matchmaker),
    kv: optional(Empty),
    identity: optional(Type.Unknown()),
  },
  { title: 'VersionConfig', examples: [EXAMPLE] },
);
export type VersionConfig = Static<typeof VersionConfig>;
