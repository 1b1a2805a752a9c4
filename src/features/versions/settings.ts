import type { PortProtocol } from '../../platform/tokens/caller.ts';
import type { NetworkMode } from '../ports.ts';
import type {
  ActionConfig,
  CreateActionConfig,
  GameModeConfig,
  MatchmakerConfig,
  RegionConfig,
  VerificationConfig,
} from './config.ts';
import { DEFAULT_TIER } from './tiers.ts';

const DEFAULT_MAX_PLAYERS = 32;

export interface RegionSettings {
  tier: string;
  idle_lobbies: { min: number; max: number };
}

/** A port of a game mode: one behind the gateway, or a range of host ports. */
export interface PortSettings {
  protocol: PortProtocol;
  /** The port inside a container. */
  port: number | undefined;
  port_range: { min: number; max: number } | undefined;
  /** `gateway`: the gateway reports the players at this port. Undefined: the server does. */
  presence: 'gateway' | undefined;
}

/** The program of a lobby's server. */
export interface RuntimeSettings {
  build_id: string;
  arguments: string[];
  environment: Record<string, string>;
  network_mode: NetworkMode;
  ports: Record<string, PortSettings>;
}

/** A game mode with all defaults filled in. */
export interface GameModeSettings {
  name: string;
  /** By slug, in the configured order. All regions if none are named. */
  regions: Map<string, RegionSettings>;
  max_players_normal: number;
  max_players_direct: number;
  max_players_party: number;
  is_listable: boolean;
  is_taggable: boolean;
  allows_dynamic_max_players: boolean;
  find: ActionConfig;
  join: ActionConfig;
  /** Undefined if players may not create lobbies. */
  create: CreateActionConfig | undefined;
  runtime: RuntimeSettings | undefined;
}

/** Returns how an action is verified, by either name of the setting; undefined if it is not. */
export function verificationOf(action: ActionConfig | undefined): VerificationConfig | undefined {
  return action?.verification_config ?? action?.verification;
}

/** Returns the game modes of a version with defaults filled in. Empty without a matchmaker. */
export function resolveMatchmaker(
  matchmaker: MatchmakerConfig | undefined,
  region_slugs: readonly string[],
): Map<string, GameModeSettings> {
  const modes = Object.entries(matchmaker?.game_modes ?? {});
  return new Map(modes.map(([name, mode]) => [name, resolveGameMode(name, mode, matchmaker ?? {}, region_slugs)]));
}

export function resolveGameMode(
  name: string,
  mode: GameModeConfig,
  matchmaker: MatchmakerConfig,
  region_slugs: readonly string[],
): GameModeSettings {
  const max_players_normal = mode.max_players ?? matchmaker.max_players ?? DEFAULT_MAX_PLAYERS;
  return {
    name,
    regions: resolveRegions(mode, matchmaker, region_slugs),
    max_players_normal,
    max_players_direct: mode.max_players_direct ?? matchmaker.max_players_direct ?? max_players_normal,
    max_players_party: mode.max_players_party ?? matchmaker.max_players_party ?? max_players_normal,
    is_listable: mode.listable ?? true,
    is_taggable: mode.taggable ?? false,
    allows_dynamic_max_players: mode.allow_dynamic_max_players ?? false,
    find: mode.actions?.find ?? { enabled: true },
    join: mode.actions?.join ?? { enabled: true },
    create: mode.actions?.create,
    runtime: resolveRuntime(mode, matchmaker),
  };
}

function resolveRegions(mode: GameModeConfig, matchmaker: MatchmakerConfig, region_slugs: readonly string[]) {
  const everywhere: Record<string, RegionConfig> = Object.fromEntries(region_slugs.map((slug) => [slug, {}]));
  const named = mode.regions ?? matchmaker.regions ?? everywhere;
  return new Map(
    Object.entries(named).map(([slug, region]): [string, RegionSettings] => {
      const general = matchmaker.regions?.[slug];
      return [
        slug,
        {
          tier: region.tier ?? general?.tier ?? mode.tier ?? matchmaker.tier ?? DEFAULT_TIER,
          idle_lobbies: region.idle_lobbies ??
            general?.idle_lobbies ??
            mode.idle_lobbies ??
            matchmaker.idle_lobbies ?? { min: 0, max: 0 },
        },
      ];
    }),
  );
}

/** Returns the program of a mode. Its own settings replace the general ones; only the environments are merged. */
function resolveRuntime(mode: GameModeConfig, matchmaker: MatchmakerConfig): RuntimeSettings | undefined {
  const docker = mode.docker ?? matchmaker.docker;
  if (docker?.image_id === undefined) return undefined;
  const ports = Object.entries(docker.ports ?? {}).map(
    ([label, { protocol = 'https', port, port_range, presence }]): [string, PortSettings] => [
      label,
      { protocol, port, port_range, presence: presence === 'gateway' ? presence : undefined },
    ],
  );
  return {
    build_id: docker.image_id,
    arguments: docker.args ?? [],
    environment: { ...matchmaker.docker?.env, ...docker.env },
    network_mode: docker.network_mode ?? 'bridge',
    ports: Object.fromEntries(ports),
  };
}
