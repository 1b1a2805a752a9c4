import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import type { Tokens } from '../../../src/platform/tokens/tokens.ts';
import { createTestClock } from '../clock.ts';
import type { TestGame } from '../game.ts';
import type { Program } from '../program.ts';
import { recordStart } from '../record-start.ts';
import { openServiceTokens } from '../service-tokens.ts';
import { waitFor } from '../wait.ts';
import type { Chance } from './chance.ts';
import type { Arrival, Search } from './matchmaking-rules.ts';

/** A region without a machine: its lobbies are real, and their servers are rows that no machine takes. */
export const NOWHERE = 'nowhere';
const HELD_MAX = 9;
const WAIT_MAX_MS = 1_000;
const FINDS_WHILE_CLOSED = 4;
const PAUSE_MS = 10;

/** A seat in an answer that a client got. */
export interface AnsweredSeat {
  lobby_id: string;
  /** The content of the request, which all of its seats share. */
  request: Arrival & { search: Search | undefined };
  token: string;
  has_left: boolean;
}

/** Identifies one closing or removal of a lobby. */
type Ending = object;

export interface Race {
  game: TestGame & { version_id: string };
  database: Database;
  tokens: Tokens;
  /** The token of a lobby's server. */
  lobbyToken(lobby_id: string): Promise<string>;
  /** The current program of each process. */
  programs: Program[];
  sent_count: number;
  /** Seats of requests that were cut off, with unknown result. */
  unanswered: number;
  answered: AnsweredSeat[];
  outcomes: Map<string, number>;
  faults: string[];
  /** Lobbies that were reported as closed or removed, unless another request reversed it. */
  ended: Map<string, Ending>;
  /** Lobbies that a client is closing and opening. Only one does so at a time, so that it knows their state. */
  closing: Set<string>;
}

export async function openRace(program: Program, database_url: string, game: Race['game']): Promise<Race> {
  const database = openDatabase({ url: database_url }, 4);
  const tokens = await openServiceTokens({ database_address: { url: database_url }, clock: createTestClock() });
  const lobby_tokens = new Map<string, Promise<string>>();
  const lobbyToken = (lobby_id: string) => {
    const token = lobby_tokens.get(lobby_id) ?? Promise.resolve(tokens.issue({ kind: 'lobby', lobby_id }));
    lobby_tokens.set(lobby_id, token);
    return token;
  };
  const counts = { sent_count: 0, unanswered: 0, answered: [], faults: [] };
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

/** The answer to a request. */
type Reply = {
  outcome: string;
  body: { lobby: { lobby_id: string }; player: { token: string }; players?: { token: string }[] };
};

/** Sends a request to a process. */
export async function send(
  race: Race,
  to: Program | undefined,
  path: string,
  token: string,
  body?: object,
  method = 'POST',
): Promise<Reply | 'cut off' | 'refused connection'> {
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
    if (/^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket)$/.test(code)) return 'refused connection';
    if (/ECONN|Connection|Socket/.test(code)) return 'cut off';
    throw error;
  }
}

/** Sends a request to any process until one answers it. Only for requests that are harmless to repeat. */
async function sendUntilAnswered(
  race: Race,
  chance: Chance,
  path: string,
  token: string,
  body?: object,
  method = 'POST',
) {
  return await waitFor(async () => {
    const reply = await send(race, chance.pick(race.programs), path, token, body, method);
    return typeof reply === 'object' && !reply.outcome.startsWith('503') && reply;
  }, `an answer to ${method} ${path}`);
}

export const GAME_MODES = ['even', 'stepped'];
export const PATHS = { find: '/matchmaker/lobbies/find', join: '/matchmaker/lobbies/join' };
/** The outcomes that are right while everything changes. Any other is a fault. */
const EXPECTED: Record<string, RegExp> = {
  find: /^200$|^503 |MATCHMAKER_(TOO_MANY_LOBBIES|LOBBY_STOPPED|NO_AVAILABLE_LOBBIES)$/,
  join: /^200$|^503 |MATCHMAKER_(LOBBY_FULL|LOBBY_STOPPED)$/,
  connected: /^200$|MATCHMAKER_PLAYER_(REMOVED|ALREADY_CONNECTED)$/,
  disconnected: /^200$/,
  closed: /^200$|MATCHMAKER_LOBBY_STOPPED$/,
  removed: /^200$/,
};

/**
 * Runs a client that finds, joins, connects, leaves, closes and removes at random, until all clients have sent enough
 * requests.
 */
export async function play(race: Race, chance: Chance, requests: number): Promise<void> {
  const mine: AnsweredSeat[] = [];

  function record(what: string, outcome: string): void {
    const name = `${what} ${outcome}`;
    race.outcomes.set(name, (race.outcomes.get(name) ?? 0) + 1);
    if (!EXPECTED[what]?.test(outcome)) race.faults.push(name);
  }

  async function requestSeats(): Promise<void> {
    const known = race.answered.at(-1 - chance.below(50));
    const kind = known && chance.oneIn(2) ? ('join' as const) : ('find' as const);
    const players = chance.oneIn(4) ? { players: 2 + chance.below(3) } : {};
    const search = { game_modes: [chance.pick(GAME_MODES)], regions: [NOWHERE] };
    const prevent_auto_create_lobby = chance.oneIn(3);
    const waiting = chance.oneIn(4) ? { wait_ms: chance.below(WAIT_MAX_MS), ticket: crypto.randomUUID() } : {};
    const body = kind === 'join' ? { lobby_id: known?.lobby_id } : { ...search, prevent_auto_create_lobby, ...waiting };
    const was_ended = new Map(race.ended);
    race.sent_count += 1;
    const reply = await send(race, chance.pick(race.programs), PATHS[kind], race.game.public_token, {
      ...body,
      ...players,
    });
    if (reply === 'refused connection') race.sent_count -= 1;
    if (reply === 'cut off') race.unanswered += players.players ?? 1;
    if (typeof reply === 'string') return await Bun.sleep(PAUSE_MS);
    record(kind, reply.outcome);
    if (reply.outcome !== '200') return;
    const { lobby, player, players: all = [player] } = reply.body;
    if (all.length !== (players.players ?? 1))
      race.faults.push(`${all.length} seats for ${players.players ?? 1} players`);
    const ending = was_ended.get(lobby.lobby_id);
    const was_ended_all_along = ending !== undefined && race.ended.get(lobby.lobby_id) === ending;
    if (kind === 'find' && was_ended_all_along)
      race.faults.push(`${lobby.lobby_id} was found although it was closed or removed`);
    const request = {
      kind,
      players: all.length,
      search: kind === 'find' ? searchOf(race, search, all.length) : undefined,
    };
    const held = all.map(({ token }): AnsweredSeat => ({ lobby_id: lobby.lobby_id, request, token, has_left: false }));
    race.answered.push(...held);
    mine.push(...held);
    if (chance.oneIn(3)) await connect(held[0]);
  }

  /** Connects a player twice at the same moment, at any processes: the token counts once. */
  async function connect(held: AnsweredSeat | undefined): Promise<void> {
    if (!held) return;
    const token = await race.lobbyToken(held.lobby_id);
    const connectOnce = () =>
      sendUntilAnswered(race, chance, '/matchmaker/players/connected', token, { player_token: held.token });
    const replies = await Promise.all([connectOnce(), connectOnce()]);
    for (const { outcome } of replies) record('connected', outcome);
    if (replies.every(({ outcome }) => outcome === '200')) race.faults.push('a token connected twice');
  }

  async function leave(): Promise<void> {
    const [held] = mine.splice(chance.below(mine.length), 1);
    if (!held) return;
    const token = await race.lobbyToken(held.lobby_id);
    const { outcome } = await sendUntilAnswered(race, chance, '/matchmaker/players/disconnected', token, {
      player_token: held.token,
    });
    record('disconnected', outcome);
    held.has_left = true;
  }

  async function close(): Promise<void> {
    const lobby_id = mine.at(-1)?.lobby_id;
    if (lobby_id === undefined || race.ended.has(lobby_id) || race.closing.has(lobby_id)) return;
    race.closing.add(lobby_id);
    const ending: Ending = {};
    const token = await race.lobbyToken(lobby_id);
    const setClosed = (is_closed: boolean) =>
      sendUntilAnswered(race, chance, '/matchmaker/lobbies/closed', token, { is_closed }, 'PUT');
    const closed = await setClosed(true);
    record('closed', closed.outcome);
    if (closed.outcome === '200') race.ended.set(lobby_id, ending);
    // Once this is answered, no process may find it, even without a notification.
    await Promise.all(Array.from({ length: FINDS_WHILE_CLOSED }, requestSeats));
    // A lobby that was removed meanwhile is not opened again.
    if (race.ended.get(lobby_id) === ending) race.ended.delete(lobby_id);
    record('closed', (await setClosed(false)).outcome);
    race.closing.delete(lobby_id);
  }

  async function remove(): Promise<void> {
    const lobby_id = mine.at(-1)?.lobby_id;
    if (lobby_id === undefined) return;
    const path = `/cloud/games/${race.game.game_id}/matchmaker/lobbies/${lobby_id}`;
    record(
      'removed',
      (await sendUntilAnswered(race, chance, path, race.game.cloud_token, undefined, 'DELETE')).outcome,
    );
    race.ended.set(lobby_id, {});
  }

  while (race.sent_count < requests) {
    await requestSeats();
    while (mine.length > HELD_MAX || (mine.length > 2 && chance.oneIn(3))) await leave();
    if (chance.oneIn(20)) await close();
    if (chance.oneIn(200)) await remove();
  }
}

/** Reports new lobbies as ready, as their servers would, until the signal is aborted. */
export async function reportReady(race: Race, chance: Chance, signal: AbortSignal): Promise<void> {
  const { namespace_id } = race.game;
  while (!signal.aborted) {
    const waiting = await race.database.queries.execute<{ lobby_id: string }>(sql`
      select lobby_id from lobbies where namespace_id = ${namespace_id} and stop_ts is null and ready_ts is null`);
    await Promise.all(
      waiting.map(async ({ lobby_id }) => {
        const token = await race.lobbyToken(lobby_id);
        await recordStart(race.database.queries, lobby_id, new Date());
        await send(race, chance.pick(race.programs), '/matchmaker/lobbies/ready', token);
      }),
    );
    await Bun.sleep(PAUSE_MS);
  }
}

type SearchBody = Pick<Search, 'game_modes' | 'regions'>;

/** Returns the search of a find, as the rules read it. */
export const searchOf = ({ game }: Race, { game_modes, regions }: SearchBody, players: number): Search => {
  return { version: game.version_id, game_modes, regions, tags: {}, players };
};
