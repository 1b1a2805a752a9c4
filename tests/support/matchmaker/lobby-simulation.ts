import { type PlannedLobby, planSeats } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import { retryableAfter } from '../../../src/features/lobbies/matchmaking/rounds/retryable-refusals.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { drawSearch, fewestFree, ifDefined, MODES, newLobby, REGIONS, rowOf } from '../lobbies/lobby-requests.ts';
import { checkMemory, keepLobbiesWarm } from '../lobbies/lobby-warm.ts';
import type { Chance } from './chance.ts';
import { freeSeats, mayCreateLobby } from './matchmaking-rules.ts';
import type { LobbyState } from './matchmaking-state.ts';
import { arrivalOf, IDLE_MAX, type OverLimit, SimulatedNamespace, TIMES } from './simulated-namespace.ts';
import { createProcess, type PendingRequest, type SimulatedProcess } from './simulated-process.ts';

const ATTEMPTS_MAX = 16;
const TOO_MANY = 'MATCHMAKER_TOO_MANY_LOBBIES';
const IDS = { namespace_id: 'namespace', game_id: 'game', address: '' };

/**
 * Runs two processes on one namespace in random steps. Returns the broken rules, and adds each step to the trace.
 */
export function simulate(chance: Chance, steps: number, trace: string[] = []): string[] {
  const players_max = chance.oneIn(2) ? 1_000 : 2 + chance.below(8);
  const namespace = new SimulatedNamespace(2 + chance.below(8), players_max);
  const processes = [createProcess(), createProcess()];
  let request_count = 0;

  function refresh(process: SimulatedProcess): void {
    for (const lobby of namespace.lobbies) {
      if ((namespace.changed.get(lobby) ?? 0) <= process.changes_seen) continue;
      if (lobby.stop_reason === undefined) process.index.set(rowOf(lobby));
      else process.index.delete(lobby.lobby_id);
    }
    process.changes_seen = namespace.changes;
    process.index.queue = namespace.queue.rows();
  }

  /** Decides a round as `rounds.decide` does: from memory, then from the database, and commits the plan. */
  function decide(process: SimulatedProcess): void {
    const round = process.undecided;
    process.undecided = [];
    const by_player = new Map(round.map((one) => [one.request.player_id, one]));
    const requests = round.map(({ request }) => request);
    const has_lost_race = round.some(({ attempts }) => attempts > 0);
    if (has_lost_race) refresh(process);
    const first = planSeats(requests, () => process.index);
    const seated = new Set(first.assignments.map(({ request }) => request));
    const others = requests.filter((request) => !seated.has(request));
    refresh(process);
    const [alone] = round.length === 1 ? others : [];
    const fewest = fewestFree(namespace, process.index, alone);
    const second = planSeats(others, () => process.index, first.assignments);
    if (alone) checkAlone(alone, fewest, second.assignments[0]?.lobby_id);
    const planned = [...first.assignments, ...second.assignments];
    const { accepting, over_limit } = namespace.takeSeats(planned);
    const not_placed = planned.flatMap(({ request, lobby_id }) =>
      over_limit.has(request.player_id) || !accepting.has(lobby_id) ? [request] : [],
    );
    for (const { request, lobby_id } of planned) {
      const one = by_player.get(request.player_id);
      if (over_limit.has(request.player_id)) refuseOverLimit(process, one, over_limit);
      else if (accepting.has(lobby_id)) finish(process, one, `is seated in ${lobby_id}`);
      else retry(process, one);
    }
    for (const lobby_id of new Set(planned.map((seat) => seat.lobby_id))) reload(process, lobby_id);
    for (const one of second.new_lobbies) {
      if (!create(one, process, by_player)) continue;
      not_placed.push(...one.first_requests.flatMap(({ player_id }) => by_player.get(player_id)?.request ?? []));
    }
    const planned_first = has_lost_race ? new Set<SeatRequest>() : seated;
    const isRetryable = retryableAfter({ requests, planned_first, not_placed });
    for (const { player_id } of second.postponed) retry(process, by_player.get(player_id));
    const refused = second.refusals.filter(({ request }) => !isRetryable(request));
    for (const { request } of second.refusals) {
      if (isRetryable(request)) retry(process, by_player.get(request.player_id));
    }
    for (const { request, code } of refused) refuse(process, by_player.get(request.player_id), code);
    const again = process.undecided;
    // In the order of their arrival, before all others.
    process.undecided = [...round.filter((one) => again.includes(one)), ...again.filter((one) => !round.includes(one))];
    // Requests that are decided again, or first players, may use what is free.
    if (second.new_lobbies.length > 0 || process.undecided.length > 0) return;
    for (const { request } of refused) checkRefusal(request, process);
  }

  /** Checks that no seat is free for a refused find that does not wait. */
  function checkRefusal(request: SeatRequest, process: SimulatedProcess): void {
    if (request.kind !== 'find' || request.ticket !== undefined) return;
    refresh(process);
    const free = fewestFree(namespace, process.index, request);
    if (free !== undefined) namespace.addFault(`${request.player_id} is refused beside ${free} free seats`);
  }

  /** Removes a request that has its seats from its process. */
  function finish(process: SimulatedProcess, one: PendingRequest | undefined, how: string): void {
    note(`${one?.request.player_id} ${one && process.queued.includes(one) ? 'waited and ' : ''}${how}`);
    process.queued = process.queued.filter((other) => other !== one);
  }

  function refuseOverLimit(process: SimulatedProcess, one: PendingRequest | undefined, over_limit: OverLimit): void {
    if (!one || !over_limit.get(one.request.player_id)) {
      retry(process, one);
    } else {
      note(`${one.request.player_id} has too many players`);
      leaveQueue(process, one);
    }
  }

  /** Adds a find that waits to the queue, unless it is there. */
  function refuse(process: SimulatedProcess, one: PendingRequest | undefined, code: string): void {
    if (!one || process.queued.includes(one)) return;
    note(`${one.request.player_id} ${code}`);
    if (!one.may_wait || code !== TOO_MANY || one.request.kind !== 'find') return;
    const ticket = `ticket ${one.request.player_id}`;
    namespace.queue.enter(ticket, one.request);
    process.queued.push({ ...one, request: { ...one.request, ticket }, attempts: 0 });
  }

  function leaveQueue(process: SimulatedProcess, one: PendingRequest): void {
    process.queued = process.queued.filter((other) => other !== one);
    if (one.request.kind === 'find') namespace.queue.leave(one.request.ticket);
  }

  /** Lets the waiting finds be decided again after a change, by the current version. */
  function wake(process: SimulatedProcess): void {
    const waiting = process.queued.filter((one) => !process.undecided.includes(one));
    for (const one of waiting) {
      one.attempts = 0;
      if (one.request.kind !== 'find' || one.request.version_id === namespace.version) continue;
      one.request = { ...one.request, version_id: namespace.version };
      namespace.queue.moveToVersion(one.request.ticket, namespace.version);
      note(`${one.request.player_id} follows the current version`);
    }
    process.undecided.push(...waiting);
  }

  function retry(process: SimulatedProcess, one: PendingRequest | undefined): void {
    if (!one) return;
    one.attempts += 1;
    note(`${one.request.player_id} tries again`);
    if (one.attempts < ATTEMPTS_MAX) process.undecided.push(one);
    else namespace.addFault(`${one.request.player_id} is decided again and again`);
  }

  function reload({ index }: SimulatedProcess, lobby_id: string): void {
    const lobby = namespace.lobby(lobby_id);
    if (lobby?.stop_reason === undefined && lobby?.is_ending === false) index.set(rowOf(lobby));
    else index.delete(lobby_id);
  }

  /** Creates a planned lobby. Returns whether any of its first requests got no seat there. */
  function create(planned: PlannedLobby, process?: SimulatedProcess, by_player?: Map<string, PendingRequest>): boolean {
    const { created, over_limit } = namespace.createPlanned(planned);
    const [creator] = planned.first_requests;
    for (const { player_id } of planned.first_requests) {
      const one = by_player?.get(player_id);
      if (!process || !one) note(`${player_id} ${created ? `creates ${created.lobby_id}` : 'may not create a lobby'}`);
      else if (over_limit.has(player_id)) refuseOverLimit(process, one, over_limit);
      else if (created) finish(process, one, `creates ${created.lobby_id}`);
      else if (over_limit.has(creator?.player_id ?? '')) retry(process, one);
      else refuse(process, one, TOO_MANY);
    }
    return over_limit.size > 0 || !created;
  }

  /** Checks that a request decided alone, from the database, gets the fullest suitable lobby if there is one. */
  function checkAlone(request: SeatRequest, fewest: number | undefined, lobby_id: string | undefined): void {
    if (request.kind !== 'find') return;
    const lobby = lobby_id === undefined ? undefined : namespace.lobby(lobby_id);
    const free = lobby && freeSeats(lobby, arrivalOf(request));
    if (free !== fewest) namespace.addFault(`${request.player_id} gets one of ${free} free seats, not of ${fewest}`);
    note(`${request.player_id} is decided alone`);
  }

  function requestSeats(): void {
    request_count += 1;
    const others = chance.oneIn(3)
      ? Array.from({ length: 1 + chance.below(2) }, (_, index) => `${request_count}+${index}`)
      : [];
    const client = { name: chance.pick(['near', 'far']), players_max };
    const limit = chance.oneIn(2) ? { lobby_count_max: namespace.limits.lobby_count_max } : {};
    const base = { ...IDS, player_id: String(request_count), others, client };
    const process = chance.pick(processes);
    const lobby_id = `lobby ${chance.below(namespace.lobbies.length + 1)}`;
    const request: SeatRequest = chance.oneIn(4)
      ? { kind: 'join', ...base, lobby_id }
      : { kind: 'find', ...base, version_id: namespace.version, search: drawSearch(chance), ...limit };
    const may_wait = request.kind === 'find' && request.search.new_lobby !== undefined && chance.oneIn(2);
    process.undecided.push({ request, attempts: 0, may_wait });
    note(`${request_count} is sent`);
  }

  /** A player creates a custom lobby. */
  function createCustom(): void {
    request_count += 1;
    const publicity = chance.pick(['public', 'private'] as const);
    const client = { name: 'near', players_max };
    const lobby = newLobby(chance.pick(MODES), chance.pick(REGIONS), {}, publicity);
    const first_requests = [{ player_id: String(request_count), address: '', client }];
    create({ ...IDS, version_id: namespace.version, lobby, first_requests });
  }

  function keepWarm(): void {
    note(`${keepLobbiesWarm(namespace, 1 + chance.below(IDLE_MAX))} warm lobbies are created`);
  }

  function reconcile(): void {
    namespace.endDue();
    note(`${namespace.running_count} lobbies run, ${namespace.seatedPlayers().length} players have seats`);
  }

  function running(): LobbyState | undefined {
    const lobby = namespace.lobby(`lobby ${chance.below(namespace.lobbies.length || 1)}`);
    return lobby?.stop_reason === undefined ? lobby : undefined;
  }

  const seated = () => namespace.seatedPlayer(String(1 + chance.below(request_count || 1)));

  const ACTIONS: [weight: number, act: () => void][] = [
    [30, requestSeats],
    [25, () => decide(chance.pick(processes))],
    [4, () => refresh(chance.pick(processes))],
    [6, () => wake(chance.pick(processes))],
    [1, abortWaiting],
    [2, createCustom],
    [14, () => ifDefined(running(), (lobby) => namespace.ready(lobby))],
    [4, () => ifDefined(running(), (lobby) => namespace.setClosed(lobby, chance.oneIn(2)))],
    [8, () => ifDefined(seated(), (player) => namespace.connect(player, player.lobby))],
    [8, () => ifDefined(seated(), (player) => namespace.remove([player], 'disconnected'))],
    [1, () => ifDefined(running(), (lobby) => Object.assign(lobby, { is_ending: true }))],
    [1, () => ifDefined(running(), (lobby) => namespace.stop(lobby, 'removed'))],
    [3, () => namespace.advance(chance.pick([1_000, 30_000, TIMES.seat_timeout_ms, TIMES.ready_timeout_ms]))],
    [3, reconcile],
    [2, keepWarm],
    [1, deploy],
  ];
  const weighted_actions = ACTIONS.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));

  /** Aborts a find that waits. */
  function abortWaiting(): void {
    const process = chance.pick(processes);
    const waiting = process.queued.filter((one) => !process.undecided.includes(one));
    ifDefined(waiting[chance.below(waiting.length || 1)], (one) => leaveQueue(process, one));
  }

  function deploy(): void {
    namespace.version = chance.pick(['one', 'two']);
  }

  function note(text: string): void {
    trace.push(text);
  }

  for (let step = 0; step < steps && namespace.faults.length === 0; step += 1) {
    namespace.advance(1);
    chance.pick(weighted_actions)();
    if (step % 25 === 0) namespace.check();
  }
  for (const process of processes) {
    decideAll(process);
    if (process.undecided.length > 0) namespace.addFault('a request is never decided');
    refresh(process);
    for (const lobby of namespace.running()) checkMemory(namespace, process.index, lobby);
  }
  checkQueue();
  namespace.advance(TIMES.player_timeout_ms + TIMES.ready_timeout_ms);
  reconcile();
  namespace.check();
  if (namespace.seatedPlayers().length > 0) namespace.addFault(`${namespace.seatedPlayers().length} seats never end`);
  return namespace.faults;

  function decideAll(process: SimulatedProcess): void {
    for (let round = 0; process.undecided.length > 0 && round < ATTEMPTS_MAX; round += 1) decide(process);
  }

  /** Checks that no waiting find could have a seat once all processes know every change. */
  function checkQueue(): void {
    reconcile();
    // Each time, at least the first find is decided.
    const times = namespace.queue.waiting.length + 1;
    for (let time = 0; time < times; time += 1) {
      for (const process of processes) {
        wake(process);
        decideAll(process);
      }
    }
    const queued = processes.flatMap((process) => process.queued);
    const rows = namespace.queue.waiting.length;
    if (queued.length !== rows) namespace.addFault(`${queued.length} finds wait in ${rows} rows`);
    const { lobby_count_max } = namespace.limits;
    for (const process of processes) {
      for (const { request } of process.queued) {
        if (fewestFree(namespace, process.index, request) !== undefined)
          namespace.addFault(`${request.player_id} waits although there are seats`);
        const waiting_before = namespace.queue.before(namespace.queue.placeOf(request)).length;
        if (mayCreateLobby({ running: namespace.running_count, lobby_count_max, waiting_before }))
          namespace.addFault(`${request.player_id} waits although it may create a lobby`);
      }
    }
    for (const process of processes) for (const one of process.queued) leaveQueue(process, one);
  }
}
