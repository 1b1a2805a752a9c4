import { type PlannedLobby, planSeats } from '../../src/features/lobbies/matchmaking/planner.ts';
import { retryableAfter } from '../../src/features/lobbies/matchmaking/retryable-refusals.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import type { Chance } from './chance.ts';
import { createMachine, type Machine, type Waiting } from './lobby-machine.ts';
import { asRow, drawSearch, freeFor, leastFree, MODES, newLobby, REGIONS, withSome } from './lobby-requests.ts';
import { checkMemory, keepLobbiesWarm } from './lobby-warm.ts';
import {
  type Crowded,
  LobbyWorld,
  PLAYER_TIMEOUT_MS,
  READY_TIMEOUT_MS,
  SEAT_TIMEOUT_MS,
  type WorldLobby,
} from './lobby-world.ts';

const ATTEMPTS_MAX = 16;
const IDLE_MAX = 2;
const TOO_MANY = 'MATCHMAKER_TOO_MANY_LOBBIES';
const PLACE = { namespace_id: 'namespace', game_id: 'game', address: '' };

/** Two machines on one world, step by step as chance has it. Gives what was wrong; notes each step when it is given where. */
export function simulate(chance: Chance, steps: number, trace: string[] = []): string[] {
  const players_max = chance.oneIn(2) ? 1_000 : 2 + chance.below(8);
  const world = new LobbyWorld(2 + chance.below(8), players_max);
  const machines = [createMachine(), createMachine()];
  let asked = 0;
  let version_id = 'one';

  function refresh(machine: Machine): void {
    for (const lobby of world.lobbies.values()) {
      if (lobby.changed <= machine.shown) continue;
      if (lobby.stop_reason === undefined) machine.index.set(asRow(lobby));
      else machine.index.delete(lobby.lobby_id);
    }
    machine.shown = world.version;
    machine.index.queue = world.line.rows;
  }

  /** What `rounds.decide` does with a round: by memory, then by what there is; then what was planned is tried. */
  function decide(machine: Machine): void {
    const round = machine.waiting;
    machine.waiting = [];
    const by_player = new Map(round.map((one) => [one.request.player_id, one]));
    const requests = round.map(({ request }) => request);
    if (round.some(({ attempts }) => attempts > 0)) refresh(machine);
    const first = planSeats(requests, () => machine.index);
    const seated = new Set(first.seats.map(({ request }) => request));
    const others = requests.filter((request) => !seated.has(request));
    refresh(machine);
    const [alone] = round.length === 1 ? others : [];
    const least = leastFree(world, machine.index, alone);
    const second = planSeats(others, () => machine.index);
    if (alone) checkAlone(alone, least, second.seats[0]?.lobby_id);
    const planned = [...first.seats, ...second.seats];
    const { accepting, over_limit } = world.takeSeats(planned);
    const unseated = planned.flatMap(({ request }) => (over_limit.has(request.player_id) ? [request] : []));
    for (const { request, lobby_id } of planned) {
      const one = by_player.get(request.player_id);
      if (over_limit.has(request.player_id)) tooMany(machine, one, over_limit);
      else if (accepting.has(lobby_id)) sit(machine, one, `sits in ${lobby_id}`);
      else again(machine, one);
    }
    for (const lobby_id of new Set(planned.map((seat) => seat.lobby_id))) lookAgain(machine, lobby_id);
    for (const one of second.new_lobbies) {
      if (!foundFor(one, machine, by_player)) continue;
      unseated.push(...one.first_players.flatMap(({ player_id }) => by_player.get(player_id)?.request ?? []));
    }
    const isUnsure = retryableAfter(requests, unseated);
    for (const { player_id } of second.postponed) again(machine, by_player.get(player_id));
    for (const { request, code } of second.refusals) {
      const one = by_player.get(request.player_id);
      if (isUnsure(request)) again(machine, one);
      else refuse(machine, one, code);
    }
  }

  function sit(machine: Machine, one: Waiting | undefined, how: string): void {
    note(`${one?.request.player_id} ${one && machine.queued.includes(one) ? 'waited and ' : ''}${how}`);
    machine.queued = machine.queued.filter((other) => other !== one);
  }

  function tooMany(machine: Machine, one: Waiting | undefined, over_limit: Crowded): void {
    if (!one || !over_limit.get(one.request.player_id)) again(machine, one);
    else leaveOver(machine, one);
  }

  function leaveOver(machine: Machine, one: Waiting): void {
    note(`${one.request.player_id} has too many players`);
    leave(machine, one);
  }

  /** Whoever is ready to wait does, at the end; whoever waits goes on. */
  function refuse(machine: Machine, one: Waiting | undefined, code: string): void {
    if (!one || machine.queued.includes(one)) return;
    note(`${one.request.player_id} ${code}`);
    if (!one.is_patient || code !== TOO_MANY || one.request.kind !== 'find') return;
    const ticket = `ticket ${one.request.player_id}`;
    world.line.enter(ticket, one.request);
    machine.queued.push({ ...one, request: { ...one.request, ticket }, attempts: 0 });
  }

  function leave(machine: Machine, one: Waiting): void {
    machine.queued = machine.queued.filter((other) => other !== one);
    if (one.request.kind === 'find') world.line.leave(one.request.ticket);
  }

  /** There is news: those who wait try again, by the version of now. */
  function wake(machine: Machine): void {
    const asleep = machine.queued.filter((one) => !machine.waiting.includes(one));
    for (const one of asleep) {
      one.attempts = 0;
      if (one.request.kind !== 'find' || one.request.version_id === version_id) continue;
      one.request = { ...one.request, version_id };
      world.line.move(one.request.ticket, version_id);
      note(`${one.request.player_id} moves on`);
    }
    machine.waiting.push(...asleep);
  }

  function again(machine: Machine, one: Waiting | undefined): void {
    if (!one) return;
    one.attempts += 1;
    note(`${one.request.player_id} tries again`);
    if (one.attempts < ATTEMPTS_MAX) machine.waiting.push(one);
    else world.fault(`${one.request.player_id} is decided for ever`);
  }

  function lookAgain({ index }: Machine, lobby_id: string): void {
    const lobby = world.running.get(lobby_id);
    if (lobby && !lobby.is_ending) index.set(asRow(lobby));
    else index.delete(lobby_id);
  }

  /** Gives whether anybody whom it was planned for does not sit there. */
  function foundFor(planned: PlannedLobby, machine?: Machine, by_player?: Map<string, Waiting>): boolean {
    const { made, over_limit } = world.found(planned);
    const [maker] = planned.first_players;
    for (const { player_id } of planned.first_players) {
      const one = by_player?.get(player_id);
      if (!machine || !one) note(`${player_id} ${made ? `makes ${made.lobby_id}` : 'is too many'}`);
      else if (over_limit.has(player_id)) tooMany(machine, one, over_limit);
      else if (made) sit(machine, one, `makes ${made.lobby_id}`);
      else if (over_limit.has(maker?.player_id ?? '')) again(machine, one);
      else refuse(machine, one, TOO_MANY);
    }
    return over_limit.size > 0 || !made;
  }

  /** Whoever is decided alone by what there is gets the fullest place that suits, or there is none. */
  function checkAlone(request: SeatRequest, least: number | undefined, lobby_id: string | undefined): void {
    if (request.kind !== 'find') return;
    const lobby = lobby_id === undefined ? undefined : world.running.get(lobby_id);
    const free = lobby && freeFor(lobby, request);
    if (free !== least) world.fault(`${request.player_id} comes to ${free} free index, not to ${least}`);
    note(`${request.player_id} is alone`);
  }

  function ask(): void {
    asked += 1;
    const others = chance.oneIn(3)
      ? Array.from({ length: 1 + chance.below(2) }, (_, place) => `${asked}+${place}`)
      : [];
    const client = { name: chance.pick(['near', 'far']), players_max };
    const limit = chance.oneIn(2) ? { lobby_count_max: world.lobby_count_max } : {};
    const base = { ...PLACE, player_id: String(asked), others, client };
    const machine = chance.pick(machines);
    const lobby_id = `lobby ${chance.below(world.lobbies.size + 1)}`;
    const request: SeatRequest = chance.oneIn(4)
      ? { kind: 'join', ...base, lobby_id }
      : { kind: 'find', ...base, version_id, search: drawSearch(chance), ...limit };
    const is_patient = request.kind === 'find' && request.search.creates !== undefined && chance.oneIn(2);
    machine.waiting.push({ request, attempts: 0, is_patient });
    note(`${asked} asks`);
  }

  /** Somebody makes a lobby of his own. */
  function create(): void {
    asked += 1;
    const publicity = chance.pick(['public', 'private'] as const);
    const client = { name: 'near', players_max };
    const lobby = newLobby(chance.pick(MODES), chance.pick(REGIONS), {}, publicity);
    foundFor({ ...PLACE, version_id, lobby, first_players: [{ player_id: String(asked), address: '', client }] });
  }

  function keepWarm(): void {
    note(`${keepLobbiesWarm(world, version_id, 1 + chance.below(IDLE_MAX))} kept warm`);
  }

  function reconcile(): void {
    world.reconcile(IDLE_MAX);
    note(`${world.running.size} run, ${world.seated.size} sit`);
  }

  const any = (): WorldLobby | undefined => world.lobbies.get(`lobby ${chance.below(world.lobbies.size || 1)}`);
  const running = (): WorldLobby | undefined => {
    const lobby = any();
    return lobby?.stop_reason === undefined ? lobby : undefined;
  };
  const ACTIONS: [weight: number, act: () => void][] = [
    [30, ask],
    [25, () => decide(chance.pick(machines))],
    [4, () => refresh(chance.pick(machines))],
    [6, () => wake(chance.pick(machines))],
    [1, goAway],
    [2, create],
    [14, () => withSome(running(), (lobby) => world.ready(lobby))],
    [4, () => withSome(running(), (lobby) => world.setClosed(lobby, chance.oneIn(2)))],
    [8, () => withSome(visit(), (one) => connect(one))],
    [8, () => withSome(visit(), (one) => world.remove(one, 'disconnected'))],
    [1, () => withSome(running(), (lobby) => Object.assign(lobby, { is_ending: true }))],
    [1, () => withSome(running(), (lobby) => world.stop(lobby, 'removed'))],
    [3, () => world.pass(chance.pick([1_000, 30_000, SEAT_TIMEOUT_MS, READY_TIMEOUT_MS]))],
    [3, reconcile],
    [2, keepWarm],
    [1, deploy],
  ];
  const deck = ACTIONS.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));

  /** Somebody does not want to wait any more. */
  function goAway(): void {
    const machine = chance.pick(machines);
    const asleep = machine.queued.filter((one) => !machine.waiting.includes(one));
    withSome(asleep[chance.below(asleep.length || 1)], (one) => leave(machine, one));
  }

  function deploy(): void {
    version_id = chance.pick(['one', 'two']);
  }

  function visit(): string | undefined {
    const player_id = String(1 + chance.below(asked || 1));
    return world.seated.has(player_id) ? player_id : undefined;
  }

  function connect(player_id: string): void {
    const one = world.seated.get(player_id);
    if (one && (one.deadline_ms ?? Infinity) > world.now_ms) one.is_connected = true;
  }

  function note(text: string): void {
    trace.push(text);
  }

  for (let step = 0; step < steps && world.faults.length === 0; step += 1) {
    world.pass(1);
    chance.pick(deck)();
    if (step % 25 === 0) world.check();
  }
  for (const machine of machines) {
    for (let round = 0; machine.waiting.length > 0 && round < ATTEMPTS_MAX; round += 1) decide(machine);
    if (machine.waiting.length > 0) world.fault('somebody waits for ever');
    refresh(machine);
    for (const lobby of world.running.values()) checkMemory(world, machine.index, lobby);
  }
  checkTurns();
  world.pass(PLAYER_TIMEOUT_MS + READY_TIMEOUT_MS);
  reconcile();
  world.check();
  if (world.seated.size > 0) world.fault(`${world.seated.size} seats never end`);
  return world.faults;

  /** When all have heard of everything, nobody waits who could sit. */
  function checkTurns(): void {
    reconcile();
    // Each time at least the first one's turn comes.
    const times = world.line.rows.length + 1;
    for (let time = 0; time < times; time += 1) {
      for (const machine of machines) {
        wake(machine);
        for (let round = 0; machine.waiting.length > 0 && round < ATTEMPTS_MAX; round += 1) decide(machine);
      }
    }
    const queued = machines.flatMap((machine) => machine.queued);
    if (queued.length !== world.line.rows.length)
      world.fault(`${queued.length} wait in ${world.line.rows.length} rows`);
    for (const machine of machines) {
      for (const { request } of machine.queued) {
        const place = world.line.placeOf(request);
        if (leastFree(world, machine.index, request) !== undefined)
          world.fault(`${request.player_id} could sit and waits`);
        const may_make = world.running.size < world.lobby_count_max && world.line.before(place, []).length === 0;
        if (may_make) world.fault(`${request.player_id} could make a lobby and waits`);
      }
    }
    for (const machine of machines) for (const one of machine.queued) leave(machine, one);
  }
}
