import { type OpenLobby, Places } from '../../src/features/lobbies/places.ts';
import {
  type FindRequest,
  membersOf,
  missingLobbies,
  type PlannedLobby,
  planSeats,
  type SeatRequest,
} from '../../src/features/lobbies/rules.ts';
import type { Chance } from './chance.ts';
import {
  LobbyWorld,
  maximumFor,
  PLAYER_TIMEOUT_MS,
  READY_TIMEOUT_MS,
  SEAT_TIMEOUT_MS,
  type WorldLobby,
} from './lobby-world.ts';

const ATTEMPTS_MAX = 16;
const FAILURES_COUNT_FOR_MS = 600_000;
const MODES = ['red', 'blue'];
const REGIONS = ['here', 'there'];
const MAXIMA: Record<string, Pick<OpenLobby, 'max_players_normal' | 'max_players_direct' | 'max_players_party'>> = {
  red: { max_players_normal: 3, max_players_direct: 4, max_players_party: 5 },
  blue: { max_players_normal: 4, max_players_direct: 2, max_players_party: 3 },
};
const IDLE_MAX = 2;
const PLACE = { namespace_id: 'namespace', game_id: 'game', address: '' };

interface Waiting {
  request: SeatRequest;
  attempts: number;
}

/** A process: what it remembers of the lobbies, how far that goes, and who waits to be decided. */
interface Machine {
  places: Places;
  shown: number;
  waiting: Waiting[];
}

/** Two machines on one world, step by step as chance has it. Gives what was wrong; notes each step when it is given where. */
export function simulate(chance: Chance, steps: number, trace: string[] = []): string[] {
  const world = new LobbyWorld(2 + chance.below(8));
  const machines = [0, 1].map((): Machine => ({ places: new Places(), shown: 0, waiting: [] }));
  let asked = 0;
  let version_id = 'one';

  function refresh(machine: Machine): void {
    for (const lobby of world.lobbies.values()) {
      if (lobby.changed <= machine.shown) continue;
      if (lobby.stop_reason === undefined) machine.places.set(asRow(lobby));
      else machine.places.delete(lobby.lobby_id);
    }
    machine.shown = world.version;
  }

  /** What `rounds.decide` does with a round: by memory, then by what there is; then what was planned is tried. */
  function decide(machine: Machine): void {
    const round = machine.waiting;
    machine.waiting = [];
    const by_player = new Map(round.map((one) => [one.request.player_id, one]));
    const requests = round.map(({ request }) => request);
    if (round.some(({ attempts }) => attempts > 0)) refresh(machine);
    const first = planSeats(requests, () => machine.places);
    const seated = new Set(first.seats.map(({ request }) => request));
    const others = requests.filter((request) => !seated.has(request));
    refresh(machine);
    const [alone] = round.length === 1 ? others : [];
    const least = leastFree(machine, alone);
    const second = planSeats(others, () => machine.places);
    if (alone) checkAlone(alone, least, second.seats[0]?.lobby_id);
    const planned = [...first.seats, ...second.seats];
    const accepting = world.takeSeats(planned);
    for (const { request, lobby_id } of planned) {
      if (accepting.has(lobby_id)) note(`${request.player_id} sits in ${lobby_id}`);
      else again(machine, by_player.get(request.player_id));
    }
    for (const lobby_id of new Set(planned.map((seat) => seat.lobby_id))) lookAgain(machine, lobby_id);
    for (const { request, code } of second.refusals) note(`${request.player_id} ${code}`);
    for (const one of second.new_lobbies) foundFor(one);
  }

  function again(machine: Machine, one: Waiting | undefined): void {
    if (!one) return;
    one.attempts += 1;
    note(`${one.request.player_id} tries again`);
    if (one.attempts < ATTEMPTS_MAX) machine.waiting.push(one);
    else world.fault(`${one.request.player_id} is decided for ever`);
  }

  function lookAgain({ places }: Machine, lobby_id: string): void {
    const lobby = world.running.get(lobby_id);
    if (lobby && !lobby.is_ending) places.set(asRow(lobby));
    else places.delete(lobby_id);
  }

  function foundFor(planned: PlannedLobby): void {
    const lobby = world.found(planned);
    for (const { player_id } of planned.founders)
      note(`${player_id} ${lobby ? `makes ${lobby.lobby_id}` : 'is too many'}`);
  }

  /** The fewest places that are free where a find may come to; undefined when it may come nowhere. */
  function leastFree({ places }: Machine, request: SeatRequest | undefined): number | undefined {
    if (request?.kind !== 'find') return undefined;
    // What nobody has noticed yet, that a server is to end, is known only to whom it cost a seat.
    const known = [...world.running.values()].filter((lobby) => places.get(lobby.lobby_id));
    const free = known.filter((lobby) => suits(lobby, request)).map((lobby) => freeFor(lobby, request));
    const enough = free.filter((count) => count >= membersOf(request).length);
    return enough.length === 0 ? undefined : Math.min(...enough);
  }

  /** Whoever is decided alone by what there is gets the fullest place that suits, or there is none. */
  function checkAlone(request: SeatRequest, least: number | undefined, lobby_id: string | undefined): void {
    if (request.kind !== 'find') return;
    const lobby = lobby_id === undefined ? undefined : world.running.get(lobby_id);
    const free = lobby && freeFor(lobby, request);
    if (free !== least) world.fault(`${request.player_id} comes to ${free} free places, not to ${least}`);
    note(`${request.player_id} is alone`);
  }

  function ask(): void {
    asked += 1;
    const others = chance.oneIn(3)
      ? Array.from({ length: 1 + chance.below(2) }, (_, place) => `${asked}+${place}`)
      : [];
    const base = { ...PLACE, player_id: String(asked), others };
    const machine = chance.pick(machines);
    const lobby_id = `lobby ${chance.below(world.lobbies.size + 1)}`;
    const request: SeatRequest = chance.oneIn(4)
      ? { kind: 'join', ...base, lobby_id }
      : { kind: 'find', ...base, version_id, search: drawSearch() };
    machine.waiting.push({ request, attempts: 0 });
    note(`${asked} asks`);
  }

  function drawSearch(): FindRequest['search'] {
    const game_mode = chance.pick(MODES);
    const region = chance.pick(REGIONS);
    const tags: Record<string, string> = chance.oneIn(4) ? { color: chance.pick(MODES) } : {};
    const made = newLobby(game_mode, region, tags, null);
    return {
      game_modes: chance.oneIn(3) ? MODES : [game_mode],
      regions: chance.oneIn(3) ? REGIONS : [region],
      tags,
      creates: chance.oneIn(4) ? undefined : made,
    };
  }

  /** Somebody makes a lobby of his own. */
  function create(): void {
    asked += 1;
    const publicity = chance.pick(['public', 'private'] as const);
    const lobby = newLobby(chance.pick(MODES), chance.pick(REGIONS), {}, publicity);
    foundFor({ ...PLACE, version_id, lobby, founders: [{ player_id: String(asked), address: '' }] });
  }

  function keepWarm(): void {
    const shelf = { namespace_id: 'namespace', version_id, game_mode: 'red', region: 'here' };
    const wanted = [{ ...shelf, min: 1 + chance.below(IDLE_MAX) }];
    const isOf = (lobby: WorldLobby) =>
      lobby.version_id === version_id && lobby.game_mode === 'red' && lobby.region === 'here';
    const count = [...world.running.values()].filter(
      (one) => isOf(one) && one.seats.size === 0 && !one.is_closed,
    ).length;
    const failed = [...world.lobbies.values()].filter(
      (one) =>
        isOf(one) &&
        !one.has_had_players &&
        one.create_ms > world.now_ms - FAILURES_COUNT_FOR_MS &&
        (one.stop_reason === 'server_ended' || one.stop_reason === 'not_ready_in_time'),
    );
    const last_ms = Math.max(...failed.map(({ stop_ms = 0 }) => stop_ms));
    const failing = failed.length > 0 ? [{ ...shelf, failures: failed.length, last_ts: new Date(last_ms) }] : [];
    const missing = missingLobbies(wanted, [{ ...shelf, count }], failing, new Date(world.now_ms));
    const made = missing.reduce((sum, one) => sum + one.count, 0);
    const may =
      failed.length > 0 && world.now_ms < last_ms + Math.min(60_000, 1_000 * 2 ** failed.length) ? 0 : Infinity;
    const expected = Math.min(may, Math.max(0, (wanted[0]?.min ?? 0) - count));
    if (made !== expected) world.fault(`${made} lobbies are kept warm where ${expected} are missing`);
    const lobby = newLobby('red', 'here', {}, null);
    for (let one = 0; one < made; one += 1) world.found({ ...PLACE, version_id, lobby, founders: [] });
    note(`${made} kept warm`);
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
    for (const lobby of world.running.values()) checkMemory(machine, lobby);
  }
  world.pass(PLAYER_TIMEOUT_MS + READY_TIMEOUT_MS);
  reconcile();
  world.check();
  if (world.seated.size > 0) world.fault(`${world.seated.size} seats never end`);
  return world.faults;

  /** What a machine remembers after news has come is what there is. */
  function checkMemory({ places }: Machine, lobby: WorldLobby): void {
    const { lobby_id, version_id: of, game_mode, region, tags } = lobby;
    const seen = places.get(lobby_id);
    if (lobby.is_ending && !seen) return;
    if (seen?.player_count !== lobby.player_count) world.fault(`${lobby_id} is remembered with ${seen?.player_count}`);
    const shelf = [...places.fullestFirst({ version_id: of, game_mode, region }, tags)].map((one) => one.lobby_id);
    const is_open = !lobby.is_closed && lobby.publicity !== 'private' && lobby.max_players_normal > lobby.player_count;
    if (shelf.includes(lobby_id) !== is_open) world.fault(`${lobby_id} is ${is_open ? 'not ' : ''}offered`);
  }
}

function newLobby(
  game_mode: string,
  region: string,
  tags: Record<string, string>,
  publicity: OpenLobby['publicity'],
): PlannedLobby['lobby'] {
  const maxima = MAXIMA[game_mode] ?? { max_players_normal: 1, max_players_direct: 1, max_players_party: 1 };
  return { game_mode, region, tags, ...maxima, publicity, lobby_config: undefined };
}

function withSome<Item>(item: Item | undefined, work: (item: Item) => void): void {
  if (item !== undefined) work(item);
}

/** Rows do not change after they were read. */
const asRow = (lobby: WorldLobby): OpenLobby => ({ ...lobby });

const freeFor = (lobby: OpenLobby, request: SeatRequest) => maximumFor(lobby, request) - lobby.player_count;

function suits(lobby: WorldLobby, { version_id, search }: FindRequest): boolean {
  const is_open = !lobby.is_closed && lobby.publicity !== 'private' && lobby.version_id === version_id;
  const { game_modes, regions, tags } = search;
  const has_tags = Object.entries(tags).every(([name, value]) => lobby.tags[name] === value);
  return is_open && game_modes.includes(lobby.game_mode) && regions.includes(lobby.region) && has_tags;
}
