import type { Clock } from '../../../platform/clock.ts';
import type { Database, Tx } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import { makeCode } from '../../codes.ts';
import type { Datacenter, Datacenters } from '../../datacenters/datacenters.ts';
import type { Namespaces } from '../../namespaces/namespaces.ts';
import type { ServerPort, Servers } from '../../servers/servers.ts';
import {
  DEFAULT_TIER,
  type PortSettings,
  type RuntimeSettings,
  TIERS,
  type Tier,
  type Versions,
} from '../../versions/versions.ts';
import type { Claim, Crowded } from '../admission-store.ts';
import { countLobby, foresee, insertLobby } from '../founding-store.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import { countIdle } from '../warm-store.ts';
import { type Founder, membersOf, type PlannedLobby } from './planner.ts';

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

/** A lobby that was made, or the error because of which it was not; and which founders have too many players. */
export type Founded = { planned: PlannedLobby; crowded: Crowded[] } & ({ lobby: LobbyRow } | { error: unknown });

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

  /**
   * Makes a lobby in which its founders have their seats, but for those of whose client there are too many; none when that
   * is its maker, when the namespace has as many as it may, or when others wait for it.
   */
  async function found(tx: Tx, prepared: PreparedLobby): Promise<Founded> {
    const { planned, runtime, tier, datacenter, namespace } = prepared;
    const { game_id, namespace_id, version_id, lobby, founders } = planned;
    const lobby_id = Bun.randomUUIDv7();
    const refusal = { planned, error: new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {}) };
    const claims = founders.flatMap(toClaims);
    const foreseen = await foresee(tx, namespace_id, claims, namespace.lobby_count_max);
    if (foreseen.is_refused || !(await isStillMissing(tx, planned))) return { ...refusal, crowded: foreseen.crowded };
    const counted = { ...lobby, lobby_id, namespace_id, version_id };
    const { changed, crowded } = await countLobby(tx, counted, claims, namespace.lobby_count_max);
    if (changed === undefined) return { ...refusal, crowded };
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
    const now = clock.now();
    const left_out = new Set(crowded.map(({ party }) => party));
    const seated = claims.filter(({ party }) => !left_out.has(party));
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
      create_ts: now,
      ready_ts: null,
      idle_ts: founders.length === 0 ? now : null,
      stop_ts: null,
      stop_reason: null,
      changed,
    };
    await insertLobby(tx, row, seated);
    return { planned, lobby: row, crowded };
  }

  /** Of several machines that find a warm lobby missing, one makes it: they look again one after the other. */
  async function isStillMissing(tx: Tx, { namespace_id, version_id, lobby, idle_min }: PlannedLobby): Promise<boolean> {
    if (idle_min === undefined) return true;
    await store.lockList(tx, namespace_id);
    const { game_mode, region } = lobby;
    return (await countIdle(tx, { namespace_id, version_id, game_mode, region })) < idle_min;
  }

  async function foundTogether(all: PreparedLobby[]): Promise<Founded[]> {
    return await database.transact(async (tx) => {
      const made: Founded[] = [];
      for (const one of all) made.push(await found(tx, one));
      return made;
    });
  }

  /** Lobbies of one namespace: together if that succeeds; else each alone, so that nobody fails for another's lobby. */
  async function foundAll(all: PreparedLobby[]): Promise<Founded[]> {
    const [first, ...others] = all;
    if (!first) return [];
    try {
      return await foundTogether(all);
    } catch (error) {
      if (others.length === 0) return [{ planned: first.planned, error, crowded: [] }];
      return (await Promise.all(all.map((one) => foundAll([one])))).flat();
    }
  }

  return {
    /** Makes the lobbies of a round. Says of each what became of it, in any order. */
    async foundLobbies(planned: PlannedLobby[]): Promise<Founded[]> {
      const failed: Founded[] = [];
      const prepared = await Promise.all(
        planned.map((one) =>
          prepare(one).catch((error: unknown) => void failed.push({ planned: one, error, crowded: [] })),
        ),
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

function toClaims({ address, client, ticket, ...founder }: Founder, party: number): Claim[] {
  const shared = { address, client: client.name, players_max: client.players_max, party, ticket: ticket ?? null };
  return membersOf(founder).map((player_id) => ({ player_id, ...shared }));
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
