import { type PlannedLobby, planSeats } from '../../src/features/lobbies/matchmaking/planner.ts';
import { retryableAfter } from '../../src/features/lobbies/matchmaking/retryable-refusals.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import type { Chance } from './chance.ts';
import { createMachine, type Machine, type PendingRequest } from './lobby-machine.ts';
import { drawSearch, fewestFree, MODES, newLobby, REGIONS, rowOf, withSome } from './lobby-requests.ts';
import { checkMemory, keepLobbiesWarm } from './lobby-warm.ts';
import { freeSeats, mayCreateLobby } from './matchmaking-rules.ts';
import type { LobbyState } from './matchmaking-state.ts';
import { arrivalOf, IDLE_MAX, type OverLimit, SimulatedNamespace, TIMES } from './simulated-namespace.ts';

const ATTEMPTS_MAX = 16;
const TOO_MANY = 'MATCHMAKER_TOO_MANY_LOBBIES';
const PLACE = { namespace_id: 'namespace', game_id: 'game', address: '' };

/**
 * Runs two machines on one namespace in random steps. Returns the broken rules, and adds each step to the trace.
 */
export function simulate(chance: Chance, steps: number, trace: string[] = []): string[] {
  const players_max = chance.oneIn(2) ? 1_000 : 2 + chance.below(8);
  const namespace = new SimulatedNamespace(2 + chance.below(8), players_max);
  const machines = [createMachine(), createMachine()];
  let asked = 0;

  function refresh(machine: Machine): void {
    for (const lobby of namespace.lobbies) {
      if ((namespace.changed.get(lobby) ?? 0) <= machine.changes_seen) continue;
      if (lobby.stop_reason === undefined) machine.index.set(rowOf(lobby));
      else machine.index.delete(lobby.lobby_id);
    }
    machine.changes_seen = namespace.changes;
    machine.index.queue = namespace.queue.rows();
  }

  /** Decides a round as `rounds.decide` does: from memory, then from the database, and commits the plan. */
  function decide(machine: Machine): void {
    const round = machine.undecided;
    machine.undecided = [];
    const by_player = new Map(round.map((one) => [one.request.player_id, one]));
    const requests = round.map(({ request }) => request);
    const has_lost_race = round.some(({ attempts }) => attempts > 0);
    if (has_lost_race) refresh(machine);
    const first = planSeats(requests, () => machine.index);
    const seated = new Set(first.seats.map(({ request }) => request));
    const others = requests.filter((request) => !seated.has(request));
    refresh(machine);
    const [alone] = round.length === 1 ? others : [];
    const fewest = fewestFree(namespace, machine.index, alone);
    const second = planSeats(others, () => machine.index, first.seats);
    if (alone) checkAlone(alone, fewest, second.seats[0]?.lobby_id);
    const planned = [...first.seats, ...second.seats];
    const { accepting, over_limit } = namespace.takeSeats(planned);
    const not_placed = planned.flatMap(({ request, lobby_id }) =>
      over_limit.has(request.player_id) || !accepting.has(lobby_id) ? [request] : [],
    );
    for (const { request, lobby_id } of planned) {
      const one = by_player.get(request.player_id);
      if (over_limit.has(request.player_id)) refuseOverLimit(machine, one, over_limit);
      else if (accepting.has(lobby_id)) settle(machine, one, `sits in ${lobby_id}`);
      else retry(machine, one);
    }
    for (const lobby_id of new Set(planned.map((seat) => seat.lobby_id))) reload(machine, lobby_id);
    for (const one of second.new_lobbies) {
      if (!create(one, machine, by_player)) continue;
      not_placed.push(...one.first_players.flatMap(({ player_id }) => by_player.get(player_id)?.request ?? []));
    }
    const planned_first = has_lost_race ? new Set<SeatRequest>() : seated;
    const isRetryable = retryableAfter({ requests, planned_first, not_placed });
    for (const { player_id } of second.postponed) retry(machine, by_player.get(player_id));
    const refused = second.refusals.filter(({ request }) => !isRetryable(request));
    for (const { request } of second.refusals) {
      if (isRetryable(request)) retry(machine, by_player.get(request.player_id));
    }
    for (const { request, code } of refused) refuse(machine, by_player.get(request.player_id), code);
    const again = machine.undecided;
    // In the order in which they came, before all others.
    machine.undecided = [...round.filter((one) => again.includes(one)), ...again.filter((one) => !round.includes(one))];
    // Requests that are decided again, or first players, may use what is free.
    if (second.new_lobbies.length > 0 || machine.undecided.length > 0) return;
    for (const { request } of refused) checkRefusal(request, machine);
  }

  /** Checks that no seat is free for a refused find that does not wait. */
  function checkRefusal(request: SeatRequest, machine: Machine): void {
    if (request.kind !== 'find' || request.ticket !== undefined) return;
    refresh(machine);
    const free = fewestFree(namespace, machine.index, request);
    if (free !== undefined) namespace.fault(`${request.player_id} is refused beside ${free} free seats`);
  }

  /** A request that has its seats leaves the machine. */
  function settle(machine: Machine, one: PendingRequest | undefined, how: string): void {
    note(`${one?.request.player_id} ${one && machine.queued.includes(one) ? 'waited and ' : ''}${how}`);
    machine.queued = machine.queued.filter((other) => other !== one);
  }

  function refuseOverLimit(machine: Machine, one: PendingRequest | undefined, over_limit: OverLimit): void {
    if (!one || !over_limit.get(one.request.player_id)) {
      retry(machine, one);
    } else {
      note(`${one.request.player_id} has too many players`);
      leaveQueue(machine, one);
    }
  }

  /** Adds a find that waits to the queue, unless it is there. */
  function refuse(machine: Machine, one: PendingRequest | undefined, code: string): void {
    if (!one || machine.queued.includes(one)) return;
    note(`${one.request.player_id} ${code}`);
    if (!one.is_patient || code !== TOO_MANY || one.request.kind !== 'find') return;
    const ticket = `ticket ${one.request.player_id}`;
    namespace.queue.enter(ticket, one.request);
    machine.queued.push({ ...one, request: { ...one.request, ticket }, attempts: 0 });
  }

  function leaveQueue(machine: Machine, one: PendingRequest): void {
    machine.queued = machine.queued.filter((other) => other !== one);
    if (one.request.kind === 'find') namespace.queue.leave(one.request.ticket);
  }

  /** After a change, waiting finds are decided again, by the current version. */
  function wake(machine: Machine): void {
    const asleep = machine.queued.filter((one) => !machine.undecided.includes(one));
    for (const one of asleep) {
      one.attempts = 0;
      if (one.request.kind !== 'find' || one.request.version_id === namespace.version) continue;
      one.request = { ...one.request, version_id: namespace.version };
      namespace.queue.moveToVersion(one.request.ticket, namespace.version);
      note(`${one.request.player_id} moves on`);
    }
    machine.undecided.push(...asleep);
  }

  function retry(machine: Machine, one: PendingRequest | undefined): void {
    if (!one) return;
    one.attempts += 1;
    note(`${one.request.player_id} tries again`);
    if (one.attempts < ATTEMPTS_MAX) machine.undecided.push(one);
    else namespace.fault(`${one.request.player_id} is decided forever`);
  }

  function reload({ index }: Machine, lobby_id: string): void {
    const lobby = namespace.lobby(lobby_id);
    if (lobby?.stop_reason === undefined && lobby?.is_ending === false) index.set(rowOf(lobby));
    else index.delete(lobby_id);
  }

  /** Returns whether any of the first players got no seat there. */
  function create(planned: PlannedLobby, machine?: Machine, by_player?: Map<string, PendingRequest>): boolean {
    const { created, over_limit } = namespace.createPlanned(planned);
    const [creator] = planned.first_players;
    for (const { player_id } of planned.first_players) {
      const one = by_player?.get(player_id);
      if (!machine || !one) note(`${player_id} ${created ? `makes ${created.lobby_id}` : 'is too many'}`);
      else if (over_limit.has(player_id)) refuseOverLimit(machine, one, over_limit);
      else if (created) settle(machine, one, `makes ${created.lobby_id}`);
      else if (over_limit.has(creator?.player_id ?? '')) retry(machine, one);
      else refuse(machine, one, TOO_MANY);
    }
    return over_limit.size > 0 || !created;
  }

  /** Checks that a request decided alone, from the database, gets the fullest suitable lobby if there is one. */
  function checkAlone(request: SeatRequest, fewest: number | undefined, lobby_id: string | undefined): void {
    if (request.kind !== 'find') return;
    const lobby = lobby_id === undefined ? undefined : namespace.lobby(lobby_id);
    const free = lobby && freeSeats(lobby, arrivalOf(request));
    if (free !== fewest) namespace.fault(`${request.player_id} gets one of ${free} free seats, not of ${fewest}`);
    note(`${request.player_id} is alone`);
  }

  function ask(): void {
    asked += 1;
    const others = chance.oneIn(3)
      ? Array.from({ length: 1 + chance.below(2) }, (_, index) => `${asked}+${index}`)
      : [];
    const client = { name: chance.pick(['near', 'far']), players_max };
    const limit = chance.oneIn(2) ? { lobby_count_max: namespace.limits.lobby_count_max } : {};
    const base = { ...PLACE, player_id: String(asked), others, client };
    const machine = chance.pick(machines);
    const lobby_id = `lobby ${chance.below(namespace.lobbies.length + 1)}`;
    const request: SeatRequest = chance.oneIn(4)
      ? { kind: 'join', ...base, lobby_id }
      : { kind: 'find', ...base, version_id: namespace.version, search: drawSearch(chance), ...limit };
    const is_patient = request.kind === 'find' && request.search.new_lobby !== undefined && chance.oneIn(2);
    machine.undecided.push({ request, attempts: 0, is_patient });
    note(`${asked} asks`);
  }

  /** A player creates a custom lobby. */
  function createCustom(): void {
    asked += 1;
    const publicity = chance.pick(['public', 'private'] as const);
    const client = { name: 'near', players_max };
    const lobby = newLobby(chance.pick(MODES), chance.pick(REGIONS), {}, publicity);
    const first_players = [{ player_id: String(asked), address: '', client }];
    create({ ...PLACE, version_id: namespace.version, lobby, first_players });
  }

  function keepWarm(): void {
    note(`${keepLobbiesWarm(namespace, 1 + chance.below(IDLE_MAX))} kept warm`);
  }

  function reconcile(): void {
    namespace.endDue();
    note(`${namespace.running_count} run, ${namespace.seatedPlayers().length} sit`);
  }

  function running(): LobbyState | undefined {
    const lobby = namespace.lobby(`lobby ${chance.below(namespace.lobbies.length || 1)}`);
    return lobby?.stop_reason === undefined ? lobby : undefined;
  }

  const seated = () => namespace.seatedPlayer(String(1 + chance.below(asked || 1)));

  const ACTIONS: [weight: number, act: () => void][] = [
    [30, ask],
    [25, () => decide(chance.pick(machines))],
    [4, () => refresh(chance.pick(machines))],
    [6, () => wake(chance.pick(machines))],
    [1, hangUp],
    [2, createCustom],
    [14, () => withSome(running(), (lobby) => namespace.ready(lobby))],
    [4, () => withSome(running(), (lobby) => namespace.setClosed(lobby, chance.oneIn(2)))],
    [8, () => withSome(seated(), (player) => namespace.connect(player, player.lobby))],
    [8, () => withSome(seated(), (player) => namespace.remove([player], 'disconnected'))],
    [1, () => withSome(running(), (lobby) => Object.assign(lobby, { is_ending: true }))],
    [1, () => withSome(running(), (lobby) => namespace.stop(lobby, 'removed'))],
    [3, () => namespace.pass(chance.pick([1_000, 30_000, TIMES.seat_timeout_ms, TIMES.ready_timeout_ms]))],
    [3, reconcile],
    [2, keepWarm],
    [1, deploy],
  ];
  const deck = ACTIONS.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));

  /** A client stops waiting. */
  function hangUp(): void {
    const machine = chance.pick(machines);
    const asleep = machine.queued.filter((one) => !machine.undecided.includes(one));
    withSome(asleep[chance.below(asleep.length || 1)], (one) => leaveQueue(machine, one));
  }

  function deploy(): void {
    namespace.version = chance.pick(['one', 'two']);
  }

  function note(text: string): void {
    trace.push(text);
  }

  for (let step = 0; step < steps && namespace.faults.length === 0; step += 1) {
    namespace.pass(1);
    chance.pick(deck)();
    if (step % 25 === 0) namespace.check();
  }
  for (const machine of machines) {
    decideAll(machine);
    if (machine.undecided.length > 0) namespace.fault('a request is never decided');
    refresh(machine);
    for (const lobby of namespace.running()) checkMemory(namespace, machine.index, lobby);
  }
  checkTurns();
  namespace.pass(TIMES.player_timeout_ms + TIMES.ready_timeout_ms);
  reconcile();
  namespace.check();
  if (namespace.seatedPlayers().length > 0) namespace.fault(`${namespace.seatedPlayers().length} seats never end`);
  return namespace.faults;

  function decideAll(machine: Machine): void {
    for (let round = 0; machine.undecided.length > 0 && round < ATTEMPTS_MAX; round += 1) decide(machine);
  }

  /** Checks that no waiting find could have a seat once all machines know every change. */
  function checkTurns(): void {
    reconcile();
    // At least the first find gets its turn each time.
    const times = namespace.queue.waiting.length + 1;
    for (let time = 0; time < times; time += 1) {
      for (const machine of machines) {
        wake(machine);
        decideAll(machine);
      }
    }
    const queued = machines.flatMap((machine) => machine.queued);
    const rows = namespace.queue.waiting.length;
    if (queued.length !== rows) namespace.fault(`${queued.length} finds wait in ${rows} rows`);
    const { lobby_count_max } = namespace.limits;
    for (const machine of machines) {
      for (const { request } of machine.queued) {
        if (fewestFree(namespace, machine.index, request) !== undefined)
          namespace.fault(`${request.player_id} waits although there are seats`);
        const waiting_before = namespace.queue.before(namespace.queue.placeOf(request)).length;
        if (mayCreateLobby({ running: namespace.running_count, lobby_count_max, waiting_before }))
          namespace.fault(`${request.player_id} waits although it may create a lobby`);
      }
    }
    for (const machine of machines) for (const one of machine.queued) leaveQueue(machine, one);
  }
}
