import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import type { Tokens } from '../../src/platform/tokens/tokens.ts';
import type { Chance } from './chance.ts';
import { createMovedClock } from './clock.ts';
import type { TestGame } from './game.ts';
import { type Arrival, hasRoom, haveRoom, type LobbyTraits, type Search, suits } from './matchmaking-rules.ts';
import type { Program } from './program.ts';
import { openServiceTokens } from './service-tokens.ts';
import { waitFor } from './wait.ts';

/** A region without a machine: its lobbies are real, and their servers are rows that never start. */
export const NOWHERE = 'nowhere';
const HELD_MAX = 9;
const WAIT_MAX_MS = 1_000;
const ASKS_WHILE_CLOSED = 4;
const LOOKED_FOR_EVERY_MS = 10;

/** A seat that a client was told of. */
interface Held {
  lobby_id: string;
  /** What the request asked for; all seats of one request share it. */
  asked: Arrival & { search: Search | undefined };
  token: string;
  has_left: boolean;
}

/** What there was of one moment's closing or removing, told apart from the next one. */
type Ending = object;

export interface Race {
  game: TestGame & { version_id: string };
  database: Database;
  tokens: Tokens;
  /** The token of a lobby's server. */
  lobbyToken(lobby_id: string): Promise<string>;
  /** The one that is there at the moment, of each process. */
  programs: Program[];
  asked: number;
  /** Seats of requests that were cut off, with unknown result. */
  unanswered: number;
  told: Held[];
  outcomes: Map<string, number>;
  faults: string[];
  /** Lobbies that were reported as closed or removed, unless another request reversed it. */
  ended: Map<string, Ending>;
  /** Lobbies that one client closes and opens. With two, neither would know the current state. */
  closing: Set<string>;
}

export async function openRace(program: Program, database_url: string, game: Race['game']): Promise<Race> {
  const database = openDatabase({ url: database_url }, 4);
  const tokens = await openServiceTokens({ database_address: { url: database_url }, clock: createMovedClock() });
  const lobby_tokens = new Map<string, Promise<string>>();
  const lobbyToken = (lobby_id: string) => {
    const token = lobby_tokens.get(lobby_id) ?? Promise.resolve(tokens.issue({ kind: 'lobby', lobby_id }));
    lobby_tokens.set(lobby_id, token);
    return token;
  };
  const counts = { asked: 0, unanswered: 0, told: [], faults: [] };
  return {
    game,
    database,
    tokens,
    lobbyToken,
    programs: [program],
    ...counts,
    outcomes: new Map(),
    ended: new Map(),
    closing: new Set(),
  };
}

/** What became of a request that was answered. */
type Reply = {
  outcome: string;
  body: { lobby: { lobby_id: string }; player: { token: string }; players?: { token: string }[] };
};

async function send(
  race: Race,
  to: Program | undefined,
  path: string,
  token: string,
  body?: object,
  method = 'POST',
): Promise<Reply | 'cut off' | 'nobody there'> {
  try {
    const response = await fetch(`${to?.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = await response.json();
    const outcome = response.ok ? '200' : `${response.status} ${answer.code}`;
    if (response.status >= 500 && response.status !== 503) race.faults.push(`${path}: ${outcome} ${answer.message}`);
    return { outcome, body: answer };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? `${error.code}` : '';
    if (/^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket)$/.test(code)) return 'nobody there';
    if (/ECONN|Connection|Socket/.test(code)) return 'cut off';
    throw error;
  }
}

/** The same, at one process after the other until it is answered: repeating it is harmless. */
async function insist(race: Race, chance: Chance, path: string, token: string, body?: object, method = 'POST') {
  for (;;) {
    const reply = await send(race, chance.pick(race.programs), path, token, body, method);
    if (typeof reply === 'object' && !reply.outcome.startsWith('503')) return reply;
    await Bun.sleep(LOOKED_FOR_EVERY_MS);
  }
}

const GAME_MODES = ['even', 'stepped'];
const PATHS = { find: '/matchmaker/lobbies/find', join: '/matchmaker/lobbies/join' };
/** What may be answered while everything changes; anything else is a fault. */
const EXPECTED: Record<string, RegExp> = {
  find: /^200$|^503 |MATCHMAKER_(TOO_MANY_LOBBIES|LOBBY_STOPPED|NO_AVAILABLE_LOBBIES)$/,
  join: /^200$|^503 |MATCHMAKER_(LOBBY_FULL|LOBBY_STOPPED)$/,
  connected: /^200$|MATCHMAKER_PLAYER_(REMOVED|ALREADY_CONNECTED)$/,
  disconnected: /^200$/,
  closed: /^200$|MATCHMAKER_LOBBY_STOPPED$/,
  removed: /^200$/,
};

/** A client that asks for seats, comes, leaves, closes and removes by chance, until all have asked often enough. */
export async function play(race: Race, chance: Chance, asks: number): Promise<void> {
  const mine: Held[] = [];

  function note(what: string, outcome: string): void {
    const name = `${what} ${outcome}`;
    race.outcomes.set(name, (race.outcomes.get(name) ?? 0) + 1);
    if (!EXPECTED[what]?.test(outcome)) race.faults.push(name);
  }

  async function ask(): Promise<void> {
    const known = race.told.at(-1 - chance.below(50));
    const kind = known && chance.oneIn(2) ? ('join' as const) : ('find' as const);
    const players = chance.oneIn(4) ? { players: 2 + chance.below(3) } : {};
    const search = { game_modes: [chance.pick(GAME_MODES)], regions: [NOWHERE] };
    const prevent_auto_create_lobby = chance.oneIn(3);
    const waiting = chance.oneIn(4) ? { wait_ms: chance.below(WAIT_MAX_MS), ticket: crypto.randomUUID() } : {};
    const body = kind === 'join' ? { lobby_id: known?.lobby_id } : { ...search, prevent_auto_create_lobby, ...waiting };
    const was_ended = new Map(race.ended);
    race.asked += 1;
    const reply = await send(race, chance.pick(race.programs), PATHS[kind], race.game.public_token, {
      ...body,
      ...players,
    });
    if (reply === 'nobody there') race.asked -= 1;
    if (reply === 'cut off') race.unanswered += players.players ?? 1;
    if (typeof reply === 'string') return await Bun.sleep(LOOKED_FOR_EVERY_MS);
    note(kind, reply.outcome);
    if (reply.outcome !== '200') return;
    const { lobby, player, players: all = [player] } = reply.body;
    if (all.length !== (players.players ?? 1)) race.faults.push(`${all.length} came of ${players.players ?? 1}`);
    const ending = was_ended.get(lobby.lobby_id);
    const was_ended_all_along = ending !== undefined && race.ended.get(lobby.lobby_id) === ending;
    if (kind === 'find' && was_ended_all_along)
      race.faults.push(`${lobby.lobby_id} was found though closed or removed`);
    const asked = {
      kind,
      players: all.length,
      search: kind === 'find' ? searchOf(race, search, all.length) : undefined,
    };
    const held = all.map(({ token }): Held => ({ lobby_id: lobby.lobby_id, asked, token, has_left: false }));
    race.told.push(...held);
    mine.push(...held);
    if (chance.oneIn(3)) await connect(held[0]);
  }

  /** Two game servers' calls at one moment, at any process: the token counts once. */
  async function connect(held: Held | undefined): Promise<void> {
    if (!held) return;
    const token = await race.lobbyToken(held.lobby_id);
    const show = () => insist(race, chance, '/matchmaker/players/connected', token, { player_token: held.token });
    const replies = await Promise.all([show(), show()]);
    for (const { outcome } of replies) note('connected', outcome);
    if (replies.every(({ outcome }) => outcome === '200')) race.faults.push('a token counted twice');
  }

  async function leave(): Promise<void> {
    const [held] = mine.splice(chance.below(mine.length), 1);
    if (!held) return;
    const token = await race.lobbyToken(held.lobby_id);
    const { outcome } = await insist(race, chance, '/matchmaker/players/disconnected', token, {
      player_token: held.token,
    });
    note('disconnected', outcome);
    held.has_left = true;
  }

  async function close(): Promise<void> {
    const lobby_id = mine.at(-1)?.lobby_id;
    if (lobby_id === undefined || race.ended.has(lobby_id) || race.closing.has(lobby_id)) return;
    race.closing.add(lobby_id);
    const ending: Ending = {};
    const token = await race.lobbyToken(lobby_id);
    const say = (is_closed: boolean) => insist(race, chance, '/matchmaker/lobbies/closed', token, { is_closed }, 'PUT');
    const closed = await say(true);
    note('closed', closed.outcome);
    if (closed.outcome === '200') race.ended.set(lobby_id, ending);
    // At once: no process may find it any more, even without a notification.
    await Promise.all(Array.from({ length: ASKS_WHILE_CLOSED }, ask));
    // One that was removed meanwhile is not opened again.
    if (race.ended.get(lobby_id) === ending) race.ended.delete(lobby_id);
    note('closed', (await say(false)).outcome);
    race.closing.delete(lobby_id);
  }

  async function remove(): Promise<void> {
    const lobby_id = mine.at(-1)?.lobby_id;
    if (lobby_id === undefined) return;
    const path = `/cloud/games/${race.game.game_id}/matchmaker/lobbies/${lobby_id}`;
    note('removed', (await insist(race, chance, path, race.game.cloud_token, undefined, 'DELETE')).outcome);
    race.ended.set(lobby_id, {});
  }

  while (race.asked < asks) {
    await ask();
    while (mine.length > HELD_MAX || (mine.length > 2 && chance.oneIn(3))) await leave();
    if (chance.oneIn(20)) await close();
    if (chance.oneIn(200)) await remove();
  }
}

/** Says ready for the lobbies that are made, as their servers would, until the signal. */
export async function host(race: Race, chance: Chance, signal: AbortSignal): Promise<void> {
  const { namespace_id } = race.game;
  while (!signal.aborted) {
    const waiting = await race.database.queries.execute<{ lobby_id: string }>(sql`
      select lobby_id from lobbies where namespace_id = ${namespace_id} and stop_ts is null and ready_ts is null`);
    await Promise.all(
      waiting.map(async ({ lobby_id }) => {
        const token = await race.lobbyToken(lobby_id);
        await send(race, chance.pick(race.programs), '/matchmaker/lobbies/ready', token);
      }),
    );
    await Bun.sleep(LOOKED_FOR_EVERY_MS);
  }
}

/** Waits until the queue is empty: another process removes the finds of a killed one. */
export async function untilNobodyWaits({ database, game }: Race): Promise<void> {
  await waitFor(async () => {
    const waiting = await database.queries.execute(sql`
      select from queued_finds where namespace_id = ${game.namespace_id} limit 1`);
    return waiting.length === 0;
  }, 'the queue to be empty');
}

/** What is wrong when all is quiet: who was told of a seat has it, or an end with a reason; who was not has none for ever. */
export async function audit(race: Race): Promise<string[]> {
  const { namespace_id } = race.game;
  const rows = await race.database.queries.execute<Seat>(sql`
    select player_id, players.lobby_id, remove_reason, stop_reason, connect_ts is not null or seat_deadline_ts is not null as ends
    from players join lobbies on lobbies.lobby_id = players.lobby_id where players.namespace_id = ${namespace_id}`);
  const seats = new Map(rows.map((row) => [row.player_id, row]));
  const faults: string[] = [];
  const known = new Set<string>();
  for (const { token, lobby_id, has_left } of race.told) {
    const { player_id } = await race.tokens.verifyKind(token, ['player']);
    const seat = seats.get(player_id);
    if (known.has(player_id)) faults.push(`${player_id} was told of two seats`);
    known.add(player_id);
    if (!seat) faults.push(`${player_id} has lost his seat`);
    else if (seat.lobby_id !== lobby_id) faults.push(`${player_id} sits in another lobby than he was told`);
    else if (seat.remove_reason === 'lobby_stopped' && seat.stop_reason === null) faults.push(`${lobby_id} runs`);
    else if (!has_left && ![null, 'lobby_stopped'].includes(seat.remove_reason))
      faults.push(`${player_id} was removed`);
    else if (has_left && seat.remove_reason === null) faults.push(`${player_id} still sits`);
  }
  const strangers = rows.filter(({ player_id, remove_reason }) => remove_reason === null && !known.has(player_id));
  if (strangers.length > race.unanswered) faults.push(`${strangers.length} seats of nobody`);
  const [waiting] = await race.database.queries.execute<{ count: number }>(sql`
    select count(*)::int as count from queued_finds where namespace_id = ${namespace_id}`);
  if (waiting?.count !== 0) faults.push(`${waiting?.count} wait with nobody`);
  for (const { player_id } of strangers.filter(({ ends }) => !ends)) faults.push(`${player_id} sits for ever`);
  return [...faults, ...(await auditLobbies(race, seats))];
}

/** Checks by the rules that each seat is in a lobby that was asked for, and that the seats of each lobby fit together. */
async function auditLobbies(race: Race, seats: Map<string, Seat>): Promise<string[]> {
  const lobbies = new Map((await readLobbies(race)).map((lobby) => [lobby.lobby_id, lobby]));
  const faults: string[] = [];
  const sitting = new Map<string, Map<Held['asked'], number>>();
  for (const { token, lobby_id, asked } of race.told) {
    const lobby = lobbies.get(lobby_id);
    if (!lobby) faults.push(`${lobby_id} does not exist`);
    else if (asked.search && !suits({ ...lobby, is_closed: false }, asked.search))
      faults.push(`${lobby_id} was found by ${JSON.stringify(asked.search)}`);
    const { player_id } = await race.tokens.verifyKind(token, ['player']);
    if (seats.get(player_id)?.remove_reason !== null) continue;
    const arrivals = sitting.get(lobby_id) ?? new Map<Held['asked'], number>();
    sitting.set(lobby_id, arrivals.set(asked, (arrivals.get(asked) ?? 0) + 1));
  }
  for (const [lobby_id, arrivals] of sitting) {
    const lobby = lobbies.get(lobby_id);
    // A party counts against its own maximum although some of it have left.
    const seated = [...arrivals].map(([{ kind, players }, remaining]) => ({ kind, players, remaining }));
    if (lobby && !haveRoom({ maxima: lobby.maxima, taken: 0 }, seated)) faults.push(`${lobby_id} has too many players`);
  }
  return faults;
}

/**
 * Asks with some finds, one after the other, when all is quiet: after all that happened, no process refuses a find that has
 * room by the rules, and none gets a lobby that it may not.
 */
export async function askWhenQuiet(race: Race, chance: Chance, finds: number): Promise<string[]> {
  const faults: string[] = [];
  const ending = new AbortController();
  const hosting = host(race, chance, ending.signal);
  for (let number = 0; number < finds; number += 1) {
    const wanted = { game_modes: [chance.pick(GAME_MODES)], regions: [NOWHERE], players: 1 + chance.below(3) };
    const search = searchOf(race, wanted, wanted.players);
    const lobbies = (await readLobbies(race)).filter(({ is_running }) => is_running);
    const open = lobbies.filter((lobby) => suits(lobby, search) && hasRoom(lobby, { kind: 'find', ...wanted }));
    const body = { ...wanted, prevent_auto_create_lobby: true };
    const reply = await send(
      race,
      race.programs[number % race.programs.length],
      PATHS.find,
      race.game.public_token,
      body,
    );
    if (typeof reply === 'string') throw new Error(`a process is away: ${reply}`);
    const expected = open.length > 0 ? '200' : '400 MATCHMAKER_NO_AVAILABLE_LOBBIES';
    if (reply.outcome !== expected) faults.push(`${reply.outcome} with ${open.length} open lobbies`);
    if (reply.outcome !== '200') continue;
    const { lobby, player, players = [player] } = reply.body;
    if (!open.some(({ lobby_id }) => lobby_id === lobby.lobby_id)) faults.push(`${lobby.lobby_id} is not open`);
    const asked = { kind: 'find', players: wanted.players, search } as const;
    race.told.push(...players.map(({ token }) => ({ lobby_id: lobby.lobby_id, asked, token, has_left: false })));
  }
  ending.abort();
  await hosting;
  return faults;
}

type Asked = Pick<Search, 'game_modes' | 'regions'>;

const searchOf = ({ game }: Race, { game_modes, regions }: Asked, players: number): Search => {
  return { version: game.version_id, game_modes, regions, tags: {}, players };
};

async function readLobbies({ database, game }: Race) {
  const rows = await database.queries.execute<LobbyOfRace>(sql`
    select lobby_id, version_id as version, game_mode, region, tags, publicity, is_closed, player_count as taken,
      stop_ts is null as is_running,
      jsonb_build_object('normal', max_players_normal, 'direct', max_players_direct, 'party', max_players_party) as maxima
    from lobbies where namespace_id = ${game.namespace_id}`);
  return [...rows];
}

type LobbyOfRace = LobbyTraits & { lobby_id: string; is_closed: boolean; taken: number; is_running: boolean } & Record<
    string,
    unknown
  >;

interface Seat extends Record<string, unknown> {
  player_id: string;
  lobby_id: string;
  remove_reason: string | null;
  stop_reason: string | null;
  ends: boolean;
}
