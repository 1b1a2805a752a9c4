import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Events } from '../../../platform/events.ts';
import { startLoop } from '../../../platform/loop.ts';
import { Reports } from '../../../platform/reports.ts';
import { type Feed, wakeOnChange } from '../../../platform/watch/feed.ts';
import type { Datacenters } from '../../datacenters/datacenters.ts';
import type { Machines } from '../../machines/machines.ts';
import type { Namespaces } from '../../namespaces/namespaces.ts';
import type { Servers } from '../../servers/servers.ts';
import { topics } from '../../topics.ts';
import type { Versions } from '../../versions/versions.ts';
import { createPlannedLobbies } from '../matchmaking/new-lobbies/create-lobbies.ts';
import { keepWarm } from '../matchmaking/new-lobbies/warm-pool.ts';
import type { PlannedLobby } from '../matchmaking/rounds/planner.ts';
import { surplusLobbies } from '../rules.ts';
import { createStopping } from '../stopping.ts';
import * as store from '../store.ts';
import type { AbandonedSeats } from './abandoned-seats.ts';
import type { AvoidedLobbies } from './avoided-lobbies.ts';
import { createNamespaceSteps } from './namespace-steps.ts';
import { createHinting, HINT_AFTER_MS } from './not-ready-hints.ts';
import { checkSeats } from './seat-checks.ts';

const EVERY_MS = 1_000;
/** Interval while no lobby runs. A lobby that this process creates wakes the loop. */
const EVERY_WITHOUT_LOBBIES_MS = 5_000;

export interface ReconcileDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  feed: Feed;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  servers: Servers;
  machines: Pick<Machines, 'draining' | 'heldIds'>;
  avoided: AvoidedLobbies;
  abandoned_seats: Pick<AbandonedSeats, 'release'>;
  ready_timeout_ms: number;
  seat_timeout_ms: number;
  player_timeout_ms: number;
}

/**
 * Starts the loop that stops lobbies (empty; not ready in time; its server ended, or its machine was lost or is
 * drained), releases abandoned seats, frees overdue ones, sends hints about servers that do not call ready, and creates
 * the lobbies that are kept warm.
 */
export function startReconciling(dependencies: ReconcileDependencies, signal: AbortSignal) {
  const { database, clock, events, feed, namespaces, versions, machines, avoided, abandoned_seats } = dependencies;
  const { ready_timeout_ms } = dependencies;
  const { stopAll } = createStopping(dependencies);
  const steps = createNamespaceSteps(events);
  const warm_reports = new Reports();
  const { sendHints } = createHinting({ ...dependencies, steps });
  const createPlanned = (planned: PlannedLobby[]) => createPlannedLobbies(dependencies, planned);

  /** Stops empty lobbies beyond the number that their game mode keeps. */
  async function trimIdle(): Promise<number> {
    const all_idle = await store.selectIdle(database.queries);
    const now = clock.now();
    let stopped = 0;
    await steps.forEachNamespace('idle', all_idle, async (namespace_id, idle) => {
      const namespace = await namespaces.find(namespace_id);
      // An empty lobby may stay only if it has the current version and no player created it.
      const mayStay = (lobby: store.LobbyWithoutState) =>
        lobby.version_id === namespace?.version_id && lobby.publicity === null;
      const unwanted = idle.filter((lobby) => !mayStay(lobby));
      stopped += await stopAll(unwanted, 'idle', { only_if_empty: true });
      if (!namespace) return;
      const limits = await versions.idleLimits(namespace);
      const has_room =
        !idle.some(({ is_closed }) => is_closed) ||
        (await store.countLobbies(database.queries, namespace_id)) < namespace.lobby_count_max;
      const surplus = surplusLobbies(
        idle.filter(mayStay),
        { now, has_room },
        ({ game_mode, region }) => limits.get(game_mode)?.get(region)?.max ?? 0,
      );
      stopped += await stopAll(surplus, 'idle', { only_if_empty: true });
    });
    return stopped;
  }

  /** Stops the lobbies on machines that are being drained: empty ones, and after the deadline all. */
  async function drain(): Promise<number> {
    const draining = machines.draining();
    if (draining.length === 0) return 0;
    const idsOf = (nodes: typeof draining) => nodes.map(({ node_id }) => node_id);
    const past_deadline = await store.selectOnMachines(
      database.queries,
      idsOf(draining.filter(({ is_deadline_over }) => is_deadline_over)),
    );
    const stopped = await stopAll(past_deadline, 'machine_drained');
    const remaining = await store.selectOnMachines(database.queries, idsOf(draining));
    const empty = remaining.filter(({ player_count }) => player_count === 0);
    return stopped + (await stopAll(empty, 'machine_drained', { only_if_empty: true }));
  }

  /** Makes one pass over all that may be due. Returns the number of corrections. */
  async function correctDue(): Promise<number> {
    const now = clock.now();
    const { queries } = database;
    const on_ending_servers = await store.selectOnEndingServers(queries);
    const isLost = ({ has_lost_machine }: store.LobbyOnEndingServer) => has_lost_machine;
    let corrections = await stopAll(on_ending_servers.filter(isLost), 'machine_lost');
    corrections += await stopAll(
      on_ending_servers.filter((lobby) => !isLost(lobby)),
      'server_ended',
    );
    corrections += await drain();
    corrections += await stopAll(
      await store.selectUnreadyBefore(queries, after(now, -ready_timeout_ms)),
      'not_ready_in_time',
    );
    corrections += await checkSeats({ ...dependencies, steps });
    corrections += await trimIdle();
    await sendHints(await store.selectUnreadyBefore(queries, after(now, -HINT_AFTER_MS)));
    return corrections;
  }

  let has_lobbies = false;
  const loop = startLoop({
    name: 'lobbies',
    every_ms: () => (has_lobbies ? EVERY_MS : EVERY_WITHOUT_LOBBIES_MS),
    signal,
    events,
    async step() {
      await abandoned_seats.release();
      // Seats exist only in running lobbies, so without one nothing is due.
      has_lobbies = await store.hasRunning(database.queries);
      // Before lobbies are stopped, which may take seconds: finds would fill up a machine that is drained.
      await avoided.refresh();
      try {
        return has_lobbies ? await correctDue() : 0;
      } finally {
        // Even if a lobby could not be stopped, because finds need the warm lobbies.
        await keepWarm({ ...dependencies, createPlanned, reports: warm_reports });
      }
    },
  });
  wakeOnChange(loop, { feed, topics: [topics.serversEnding(), topics.machines()], signal });
  return loop;
}
