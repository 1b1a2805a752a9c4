import { after, type Clock } from '../../../../platform/clock.ts';
import type { Database } from '../../../../platform/database/database.ts';
import { rootMessageOf } from '../../../../platform/database/failures.ts';
import { ServiceError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import type { Reports } from '../../../../platform/reports.ts';
import type { Datacenters } from '../../../datacenters/datacenters.ts';
import type { NamespaceRow, Namespaces } from '../../../namespaces/namespaces.ts';
import type { Versions } from '../../../versions/versions.ts';
import { missingLobbies, preparingSince, type WarmPool } from '../../rules.ts';
import type { PlannedLobby } from '../rounds/planner.ts';
import type { CreatePlanned } from './create-lobbies.ts';
import * as store from './warm-store.ts';

/** How long a warm lobby that stopped by itself counts as a failure, which delays new ones (`missingLobbies`). */
const FAILURES_COUNT_FOR_MS = 10 * 60_000;
const NAMESPACES_READ_AT_ONCE = 16;

export interface WarmPoolDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  createPlanned: CreatePlanned;
  /** The failures that were reported before. */
  reports: Reports;
}

/** A pool that a game mode keeps warm. */
interface ConfiguredPool extends WarmPool {
  game_id: string;
}

/** Creates the empty lobbies that game modes keep warm in each region (idle_lobbies.min). Returns how many it created. */
export async function keepWarm(dependencies: WarmPoolDependencies): Promise<number> {
  const { database, clock, createPlanned } = dependencies;
  const pools = await listWarmPools(dependencies);
  if (pools.length === 0) return 0;
  const now = clock.now();
  const namespace_ids = [...new Set(pools.map(({ namespace_id }) => namespace_id))];
  const [warm, failing] = await Promise.all([
    store.selectWarmCounts(database.queries, namespace_ids, preparingSince(now)),
    store.selectFailing(database.queries, namespace_ids, after(now, -FAILURES_COUNT_FOR_MS)),
  ]);
  const planned: PlannedLobby[] = [];
  for (const { pool, count } of missingLobbies(pools, warm, failing, now)) {
    const lobby = await planWarmLobby(dependencies, pool);
    if (lobby) planned.push(...Array.from({ length: count }, () => lobby));
  }
  const outcomes = await createPlanned(planned);
  for (const outcome of outcomes) {
    const pool = toReportedPool(outcome.planned);
    if (outcome.is === 'created') dependencies.reports.forget(subjectOf(pool));
    else if (outcome.is === 'refused' && !isTooMany(outcome.error)) report(dependencies, pool, outcome.error);
  }
  return outcomes.filter(({ is }) => is === 'created').length;
}

/** Returns the pools of all namespaces. Reports those that cannot be read, which must not delay the others. */
async function listWarmPools(dependencies: WarmPoolDependencies): Promise<ConfiguredPool[]> {
  const { versions, namespaces, datacenters } = dependencies;
  const version_ids = await versions.listKeptWarm();
  if (version_ids.length === 0) return [];
  const [warm_namespaces, known_datacenters] = await Promise.all([
    namespaces.onVersions(version_ids),
    datacenters.list(),
  ]);
  const slugs = new Set(known_datacenters.map(({ slug }) => slug));
  const listPools = async ({ namespace_id, game_id, version_id }: NamespaceRow): Promise<ConfiguredPool[]> => {
    const modes = await versions.idleLimits({ game_id, version_id });
    return [...modes].flatMap(([game_mode, limits_by_region]) =>
      [...limits_by_region]
        .filter(([region, { min }]) => min > 0 && slugs.has(region))
        .map(([region, { min }]) => ({ namespace_id, game_id, version_id, game_mode, region, min })),
    );
  };
  const pools: ConfiguredPool[] = [];
  for (let first = 0; first < warm_namespaces.length; first += NAMESPACES_READ_AT_ONCE) {
    const batch = warm_namespaces.slice(first, first + NAMESPACES_READ_AT_ONCE);
    const listed = await Promise.all(
      batch.map(async (namespace) => {
        const { namespace_id } = namespace;
        try {
          const namespace_pools = await listPools(namespace);
          dependencies.reports.forget(subjectOf({ namespace_id }));
          return namespace_pools;
        } catch (cause) {
          report(dependencies, { namespace_id }, cause);
          return [];
        }
      }),
    );
    pools.push(...listed.flat());
  }
  return pools;
}

/** Plans a lobby of a pool. Returns undefined, and reports it, if its version cannot be read. */
async function planWarmLobby(
  dependencies: WarmPoolDependencies,
  { namespace_id, game_id, version_id, game_mode, region, min }: ConfiguredPool,
): Promise<PlannedLobby | undefined> {
  try {
    const mode = (await dependencies.versions.gameModes({ game_id, version_id })).get(game_mode);
    if (!mode) return undefined;
    const { max_players_normal, max_players_direct, max_players_party } = mode;
    const maxima = { max_players_normal, max_players_direct, max_players_party };
    const lobby = { game_mode, region, tags: {}, ...maxima, publicity: null, lobby_config: undefined };
    return { namespace_id, game_id, version_id, lobby, first_requests: [], warm_min: min };
  } catch (cause) {
    report(dependencies, { namespace_id, game_mode, region }, cause);
    return undefined;
  }
}

/** A pool as it is reported, or a namespace whose pools cannot be read. */
interface ReportedPool {
  namespace_id: string;
  game_mode?: string;
  region?: string;
}

function toReportedPool({ namespace_id, lobby: { game_mode, region } }: PlannedLobby): ReportedPool {
  return { namespace_id, game_mode, region };
}

const subjectOf = ({ namespace_id, game_mode = '', region = '' }: ReportedPool) =>
  `${namespace_id} ${game_mode} ${region}`;

/** Reports a failure. Repeats the report of a lasting one every ten minutes. */
function report({ events, reports }: WarmPoolDependencies, pool: ReportedPool, cause: unknown): void {
  if (!reports.noteIfDue(subjectOf(pool), rootMessageOf(cause))) return;
  events.emit({ event: 'lobby_not_kept_warm', ...pool, cause });
}

/** Returns whether a lobby was refused because its namespace is at its limit of lobbies. */
function isTooMany(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'MATCHMAKER_TOO_MANY_LOBBIES';
}
