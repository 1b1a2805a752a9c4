import type { Clock } from '../../../../platform/clock.ts';
import type { Database, Tx } from '../../../../platform/database/database.ts';
import { isUnavailable } from '../../../../platform/database/failures.ts';
import { ServiceError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { MIB } from '../../../../platform/units.ts';
import { lockTopics } from '../../../../platform/watch/versions.ts';
import { makeCode } from '../../../codes.ts';
import type { Datacenter, Datacenters } from '../../../datacenters/datacenters.ts';
import type { Namespaces } from '../../../namespaces/namespaces.ts';
import type { ServerPort, Servers } from '../../../servers/servers.ts';
import { topics } from '../../../topics.ts';
import {
  DEFAULT_TIER,
  type PortSettings,
  type RuntimeSettings,
  TIERS,
  type Tier,
  type Versions,
} from '../../../versions/versions.ts';
import { gameModeUuid } from '../../developers/game-mode-uuid.ts';
import { preparingSince } from '../../rules.ts';
import * as store from '../../store.ts';
import type { LobbyRow } from '../../tables.ts';
import type { OverLimit, RequestedSeat } from '../rounds/admission-store.ts';
import type { PlannedLobby } from '../rounds/planner.ts';
import { type FirstRequest, playerIdsOf } from '../rounds/seat-requests.ts';
import { countLobby, insertLobby, precheckLobby } from './create-lobbies-store.ts';
import { countWarm } from './warm-store.ts';

/** 40 bits: with 10,000 lobbies in a namespace, one guess in 100 million is right. */
const CODE_LENGTH = 8;
/** Time between SIGTERM and SIGKILL, as in the reference API. */
const KILL_TIMEOUT_MS = 30_000;
/** Maximum number of lobbies of a transaction. It locks the topics of datacenters, so transactions of other games wait for it. */
const LOBBIES_PER_TRANSACTION_MAX = 16;
/** Namespaces for which lobbies are created at one time, because each takes a connection of the pool. */
const NAMESPACES_AT_ONCE_MAX = 4;

export interface CreatePlannedDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  servers: Servers;
}

/** The outcome of a planned lobby, with those of its first requests that are over their client's limit. */
export type LobbyOutcome = { planned: PlannedLobby; over_limit: OverLimit[] } & (
  | { is: 'created'; lobby: LobbyRow }
  | { is: 'refused'; error: unknown }
  /** A warm lobby that another process has created meanwhile. */
  | { is: 'not_needed' }
);

/** Creates planned lobbies. Returns an outcome for each, in any order. */
export type CreatePlanned = (planned: PlannedLobby[]) => Promise<LobbyOutcome[]>;

/** Creates lobbies, each with a server of its own and with the seats of its first requests. */
export async function createPlannedLobbies(
  dependencies: CreatePlannedDependencies,
  planned: PlannedLobby[],
): Promise<LobbyOutcome[]> {
  const failed: LobbyOutcome[] = [];
  const prepared = await Promise.all(
    planned.map(async (planned_lobby) => {
      try {
        return [await prepare(dependencies, planned_lobby)];
      } catch (error) {
        failed.push(toRefusedOutcome(planned_lobby, error));
        return [];
      }
    }),
  );
  const by_namespace = Map.groupBy(prepared.flat(), (lobby) => lobby.planned.namespace_id);
  const outcomes: LobbyOutcome[] = [];
  await forEachAtOnce([...by_namespace.values()], NAMESPACES_AT_ONCE_MAX, async (lobbies) => {
    outcomes.push(...(await createInBatches(dependencies, lobbies, LOBBIES_PER_TRANSACTION_MAX)));
  });
  for (const outcome of outcomes) {
    if (outcome.is !== 'created') continue;
    const { lobby_id, namespace_id, game_mode, region } = outcome.lobby;
    dependencies.events.emit({ event: 'lobby_created', lobby_id, namespace_id, game_mode, region });
  }
  return [...outcomes, ...failed];
}

/** A planned lobby with everything that its creation needs. */
interface PreparedLobby {
  planned: PlannedLobby;
  runtime: RuntimeSettings;
  tier: Tier;
  datacenter: Datacenter;
  namespace: { name_id: string; lobby_count_max: number };
  version_name: string;
}

/** Looks up everything that the creation of a lobby needs. Throws if its version or region has changed meanwhile. */
async function prepare(
  { versions, namespaces, datacenters }: CreatePlannedDependencies,
  planned: PlannedLobby,
): Promise<PreparedLobby> {
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
 * Creates lobbies of one namespace in batches, one after another because all change the same rows. Once the database cannot
 * be used, refuses the rest without trying.
 */
async function createInBatches(
  dependencies: CreatePlannedDependencies,
  lobbies: PreparedLobby[],
  batch_max: number,
): Promise<LobbyOutcome[]> {
  const outcomes: LobbyOutcome[] = [];
  let failure: unknown;
  for (let first = 0; first < lobbies.length; first += batch_max) {
    const batch = lobbies.slice(first, first + batch_max);
    const batch_outcomes = failure === undefined ? await createBatch(dependencies, batch) : refuseAll(batch, failure);
    outcomes.push(...batch_outcomes);
    failure ??= batch_outcomes.map(unavailabilityOf).find((error) => error !== undefined);
  }
  return outcomes;
}

/**
 * Creates a batch of lobbies in one transaction. If it fails because of one of them, creates each lobby in a transaction of
 * its own.
 */
async function createBatch(dependencies: CreatePlannedDependencies, batch: PreparedLobby[]): Promise<LobbyOutcome[]> {
  try {
    return await dependencies.database.transact(async (tx) => {
      if (batch.length > 1) await lockTopics(tx, topicsOf(batch));
      const outcomes: LobbyOutcome[] = [];
      for (const lobby of batch) outcomes.push(await createLobby(dependencies, tx, lobby));
      return outcomes;
    });
  } catch (error) {
    // Each lobby alone would fail in the same way.
    if (batch.length === 1 || isUnavailable(error)) return refuseAll(batch, error);
  }
  return await createInBatches(dependencies, batch, 1);
}

/**
 * Returns the topics that all lobbies of one transaction bump. `createBatch` locks them before the first of several; otherwise a
 * transaction could hold one datacenter's topic and wait for another's while a second transaction does the reverse.
 */
const topicsOf = (batch: PreparedLobby[]): string[] =>
  batch.flatMap(({ planned: { namespace_id }, datacenter: { datacenter_id } }) => [
    topics.lobbiesOf(namespace_id),
    topics.serversOf(namespace_id),
    topics.work(datacenter_id),
  ]);

/** Returns the error of an outcome if the database could not be used. */
function unavailabilityOf(outcome: LobbyOutcome): unknown {
  return outcome.is === 'refused' && isUnavailable(outcome.error) ? outcome.error : undefined;
}

function refuseAll(lobbies: PreparedLobby[], error: unknown): LobbyOutcome[] {
  return lobbies.map(({ planned }) => toRefusedOutcome(planned, error));
}

function toRefusedOutcome(planned: PlannedLobby, error: unknown, over_limit: OverLimit[] = []): LobbyOutcome {
  return { is: 'refused', planned, error, over_limit };
}

/**
 * Creates a lobby and seats its first requests. A request gets no seat if its client is over its limit of players. No lobby
 * is created if this applies to its creator, if the namespace is at its limit of lobbies, or if earlier finds wait for one.
 */
async function createLobby(
  { servers, clock }: CreatePlannedDependencies,
  tx: Tx,
  prepared: PreparedLobby,
): Promise<LobbyOutcome> {
  const { planned, runtime, tier, datacenter, namespace } = prepared;
  const { game_id, namespace_id, version_id, lobby, first_requests } = planned;
  const lobby_id = Bun.randomUUIDv7();
  // Also the outcome if the creator is over its client's limit: callers look at `over_limit` first.
  const too_many = new ServiceError('MATCHMAKER_TOO_MANY_LOBBIES', {});
  const requested = first_requests.flatMap(toRequestedSeats);
  const precheck = await precheckLobby(tx, namespace_id, requested, namespace.lobby_count_max);
  if (precheck.is_refused) return toRefusedOutcome(planned, too_many, precheck.over_limit);
  if (!(await isStillNeeded(tx, planned, clock.now()))) return { is: 'not_needed', planned, over_limit: [] };
  const counted = { ...lobby, lobby_id, namespace_id, version_id };
  const { changed, over_limit } = await countLobby(tx, counted, requested, namespace.lobby_count_max);
  if (changed === undefined) return toRefusedOutcome(planned, too_many, over_limit);
  const { server_id } = await servers.createWith(tx, {
    game_id,
    namespace_id,
    datacenter_id: datacenter.datacenter_id,
    build_id: runtime.build_id,
    tags: { lobby_id, game_mode: lobby.game_mode },
    arguments: runtime.arguments,
    environment: runtime.environment,
    service_environment: toServiceEnvironment(lobby_id, prepared),
    token_caller: { kind: 'lobby', lobby_id },
    network_mode: runtime.network_mode,
    ports: toServerPorts(runtime.ports),
    ...tier,
    kill_timeout_ms: KILL_TIMEOUT_MS,
  });
  // The server gets it in its environment; the row has no column for it.
  const { lobby_config: _lobby_config, ...lobby_columns } = lobby;
  const now = clock.now();
  const over_numbers = new Set(over_limit.map(({ request_number }) => request_number));
  const seated = requested.filter(({ request_number }) => !over_numbers.has(request_number));
  const row: LobbyRow = {
    ...lobby_columns,
    lobby_id,
    game_id,
    namespace_id,
    version_id,
    server_id,
    player_count: seated.length,
    is_closed: false,
    closed_ts: null,
    state: null,
    code: makeCode(CODE_LENGTH),
    ports: null,
    create_ts: now,
    ready_ts: null,
    idle_ts: first_requests.length === 0 ? now : null,
    seats_check_ts: now,
    stop_ts: null,
    stop_reason: null,
    changed,
  };
  await insertLobby(tx, row, seated);
  return { is: 'created', planned, lobby: row, over_limit };
}

/**
 * Returns whether a planned lobby is still needed: a warm one only while its pool has too few. The lock makes processes
 * check in turn.
 */
async function isStillNeeded(
  tx: Tx,
  { namespace_id, version_id, lobby, warm_min }: PlannedLobby,
  now: Date,
): Promise<boolean> {
  if (warm_min === undefined) return true;
  await store.lockList(tx, namespace_id);
  const { game_mode, region } = lobby;
  return (await countWarm(tx, { namespace_id, version_id, game_mode, region }, preparingSince(now))) < warm_min;
}

function toRequestedSeats(
  { address, client, ticket, ...players }: FirstRequest,
  request_number: number,
): RequestedSeat[] {
  const shared = {
    address,
    client: client.name,
    players_max: client.players_max,
    request_number,
    ticket: ticket ?? null,
  };
  return playerIdsOf(players).map((player_id) => ({ player_id, ...shared }));
}

/** Returns the environment of a lobby's server, without the prefixes SERVICE_ and RIVET_. */
function toServiceEnvironment(lobby_id: string, prepared: PreparedLobby): Record<string, string> {
  const { planned, tier, datacenter, namespace, version_name } = prepared;
  const { namespace_id, version_id, lobby } = planned;
  const memory = String(tier.memory * MIB);
  const game_mode_uuid = gameModeUuid(version_id, lobby.game_mode);
  return {
    LOBBY_ID: lobby_id,
    NAMESPACE_ID: namespace_id,
    NAMESPACE_NAME: namespace.name_id,
    VERSION_ID: version_id,
    VERSION_NAME: version_name,
    GAME_MODE_ID: game_mode_uuid,
    GAME_MODE_NAME: lobby.game_mode,
    LOBBY_GROUP_ID: game_mode_uuid,
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

/** Returns the ports of a lobby's server. A port range belongs to the machine; other ports are for the gateway. */
function toServerPorts(ports: Record<string, PortSettings>): Record<string, ServerPort> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, { protocol, port, port_range, presence }]): [string, ServerPort] => {
      if (port_range) return [label, { protocol, routing: 'host', port_range }];
      const more = { ...(port && { internal_port: port }), ...(presence && { presence }) };
      return [label, { protocol, routing: 'game_guard', ...more }];
    }),
  );
}
