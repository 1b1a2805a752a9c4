import type { Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { makeCode } from '../codes.ts';
import type { Datacenter, Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { ServerPort, Servers } from '../servers/servers.ts';
import {
  DEFAULT_TIER,
  type PortSettings,
  type RuntimeSettings,
  TIERS,
  type Tier,
  type Versions,
} from '../versions/versions.ts';
import { membersOf, type PlannedLobby } from './rules.ts';
import * as store from './store.ts';
import type { LobbyRow } from './tables.ts';
import { countIdle } from './warm-store.ts';

/** 40 bits: with 10,000 lobbies in a namespace, one guess in 100 million is somebody's. */
const CODE_LENGTH = 8;
/** The field's (field-behaviour 4.7): SIGTERM, then SIGKILL. */
const KILL_TIMEOUT_MS = 30_000;
const BYTES_PER_MEGABYTE = 1024 ** 2;

interface FoundingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  servers: Servers;
}

/** A planned lobby with everything that is to be known before it can be made. */
interface PreparedLobby {
  planned: PlannedLobby;
  runtime: RuntimeSettings;
  tier: Tier;
  datacenter: Datacenter;
  namespace: { name_id: string; lobby_count_max: number };
  version_name: string;
}

/** A lobby that was made, or the error because of which it was not. */
type Founded = { planned: PlannedLobby; lobby: LobbyRow } | NotFounded;
type NotFounded = { planned: PlannedLobby; error: unknown };

export type Founding = ReturnType<typeof createFounding>;

/** Makes lobbies, each with a server of its own. */
export function createFounding(dependencies: FoundingDependencies) {
  const { database, clock, events, namespaces, versions, datacenters, servers } = dependencies;

  /** Looks up what a lobby is made of. Throws when its version or region is not what it was. */
  async function prepare(planned: PlannedLobby): Promise<PreparedLobby> {
    const { game_id, version_id, namespace_id, lobby } = planned;
    const [version, modes, namespace, all_datacenters] = await Promise.all([
      versions.get({ game_id, version_id }),
      versions.gameModes({ game_id, version_id }),
      namespaces.get({ game_id, namespace_id }),
      datacenters.list(),
    ]);
    const mode = modes.get(lobby.game_mode);
    const datacenter = all_datacenters.find(({ slug }) => slug === lobby.region);
    const tier = TIERS.get(mode?.regions.get(lobby.region)?.tier ?? DEFAULT_TIER);
    if (!mode?.runtime || !datacenter || !tier) throw new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {});
    return { planned, runtime: mode.runtime, tier, datacenter, namespace, version_name: version.display_name };
  }

  /** Makes a lobby in which its founders have their seats; undefined when the namespace has as many as it may. */
  async function found(tx: Tx, prepared: PreparedLobby): Promise<LobbyRow | undefined> {
    const { planned, runtime, tier, datacenter, namespace } = prepared;
    const { game_id, namespace_id, version_id, lobby, founders } = planned;
    const lobby_id = Bun.randomUUIDv7();
    if (!(await isStillMissing(tx, planned))) return undefined;
    const changed = await store.countLobby(tx, { lobby_id, namespace_id }, namespace.lobby_count_max);
    if (changed === undefined) return undefined;
    const { server_id } = await servers.createWith(tx, {
      game_id,
      namespace_id,
      datacenter_id: datacenter.datacenter_id,
      build_id: runtime.build_id,
      tags: { lobby_id, game_mode: lobby.game_mode },
      arguments: runtime.arguments,
      environment: runtime.environment,
      service_environment: describeToServer(lobby_id, prepared),
      token_caller: { kind: 'lobby', lobby_id },
      network_mode: runtime.network_mode,
      ports: toServerPorts(runtime.ports),
      ...tier,
      kill_timeout_ms: KILL_TIMEOUT_MS,
    });
    const { lobby_config: _told, ...kept } = lobby;
    const seated = founders.flatMap(({ address, ...founder }) =>
      membersOf(founder).map((player_id) => ({ player_id, address })),
    );
    const row: LobbyRow = {
      ...kept,
      lobby_id,
      game_id,
      namespace_id,
      version_id,
      server_id,
      player_count: seated.length,
      is_closed: false,
      state: null,
      code: makeCode(CODE_LENGTH),
      ports: null,
      create_ts: clock.now(),
      ready_ts: null,
      idle_ts: founders.length === 0 ? clock.now() : null,
      stop_ts: null,
      stop_reason: null,
      changed,
    };
    await store.insertLobby(tx, row, seated);
    return row;
  }

  /** Of several machines that find a warm lobby missing, one makes it: they look again one after the other. */
  async function isStillMissing(tx: Tx, { namespace_id, version_id, lobby, idle_min }: PlannedLobby): Promise<boolean> {
    if (idle_min === undefined) return true;
    await store.lockList(tx, namespace_id);
    const { game_mode, region } = lobby;
    return (await countIdle(tx, { namespace_id, version_id, game_mode, region })) < idle_min;
  }

  async function foundTogether(all: PreparedLobby[]): Promise<Founded[]> {
    const rows = await database.transact(async (tx) => {
      const made: (LobbyRow | undefined)[] = [];
      for (const one of all) made.push(await found(tx, one));
      return made;
    });
    return all.map(({ planned }, index) => {
      const lobby = rows[index];
      return lobby ? { planned, lobby } : { planned, error: new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {}) };
    });
  }

  /** Lobbies of one namespace: together if that succeeds; else each alone, so that nobody fails for another's lobby. */
  async function foundAll(all: PreparedLobby[]): Promise<Founded[]> {
    const [first, ...others] = all;
    if (!first) return [];
    try {
      return await foundTogether(all);
    } catch (error) {
      if (others.length === 0) return [{ planned: first.planned, error }];
      return (await Promise.all(all.map((one) => foundAll([one])))).flat();
    }
  }

  return {
    /** Makes the lobbies of a round. Says of each what became of it, in any order. */
    async foundLobbies(planned: PlannedLobby[]): Promise<Founded[]> {
      const failed: NotFounded[] = [];
      const prepared = await Promise.all(
        planned.map((one) => prepare(one).catch((error: unknown) => void failed.push({ planned: one, error }))),
      );
      // A transaction holds one namespace at the most: two of them never wait for each other.
      const by_namespace = Map.groupBy(
        prepared.filter((one) => one !== undefined),
        (one) => one.planned.namespace_id,
      );
      const founded = (await Promise.all([...by_namespace.values()].map(foundAll))).flat();
      for (const one of founded) if ('lobby' in one) announce(one.lobby);
      return [...founded, ...failed];
    },
  };

  function announce({ lobby_id, namespace_id, game_mode, region }: LobbyRow): void {
    events.emit({ event: 'lobby_created', lobby_id, namespace_id, game_mode, region });
  }
}

/** What a lobby's server is told (field-behaviour 4.14), without SERVICE_ and RIVET_ in front. */
function describeToServer(lobby_id: string, prepared: PreparedLobby): Record<string, string> {
  const { planned, tier, datacenter, namespace, version_name } = prepared;
  const { namespace_id, version_id, lobby } = planned;
  const memory = String(tier.memory * BYTES_PER_MEGABYTE);
  return {
    LOBBY_ID: lobby_id,
    NAMESPACE_ID: namespace_id,
    NAMESPACE_NAME: namespace.name_id,
    VERSION_ID: version_id,
    VERSION_NAME: version_name,
    GAME_MODE_ID: lobby.game_mode,
    GAME_MODE_NAME: lobby.game_mode,
    LOBBY_GROUP_ID: lobby.game_mode,
    LOBBY_GROUP_NAME: lobby.game_mode,
    REGION_ID: datacenter.datacenter_id,
    REGION_NAME: datacenter.slug,
    MAX_PLAYERS_NORMAL: String(lobby.max_players_normal),
    MAX_PLAYERS_DIRECT: String(lobby.max_players_direct),
    MAX_PLAYERS_PARTY: String(lobby.max_players_party),
    CPU: String(tier.cpu),
    MEMORY: memory,
    MEMORY_OVERSUBSCRIBE: memory,
    ...(lobby.lobby_config === undefined ? {} : { LOBBY_CONFIG: lobby.lobby_config }),
    ...(Object.keys(lobby.tags).length > 0 ? { LOBBY_TAGS: JSON.stringify(lobby.tags) } : {}),
  };
}

/** A range is the machine's own; everything else is one port that the gateway will stand before. */
function toServerPorts(ports: Record<string, PortSettings>): Record<string, ServerPort> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, { protocol, port_range }]): [string, ServerPort] => [
      label,
      port_range ? { protocol, routing: 'host', port_range } : { protocol, routing: 'game_guard' },
    ]),
  );
}
