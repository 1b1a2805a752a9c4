import { sql } from 'drizzle-orm';
import { waitFor } from '../wait.ts';
import type { Chance } from './chance.ts';
import { hasRoom, haveRoom, type LobbyTraits, suits } from './matchmaking-rules.ts';
import { type AnsweredSeat, GAME_MODES, NOWHERE, PATHS, type Race, reportReady, searchOf, send } from './race.ts';

/** Waits until the queue is empty: another process removes the finds of a killed one. */
export async function waitForEmptyQueue({ database, game }: Race): Promise<void> {
  await waitFor(async () => {
    const waiting = await database.queries.execute(sql`
      select from queued_finds where namespace_id = ${game.namespace_id} limit 1`);
    return waiting.length === 0;
  }, 'the queue to be empty');
}

/**
 * Returns what is wrong once no request is active: each seat in an answer must exist or have ended for a reason, and each
 * other seat must end.
 */
export async function audit(race: Race): Promise<string[]> {
  const { namespace_id } = race.game;
  const rows = await race.database.queries.execute<Seat>(sql`
    select player_id, players.lobby_id, remove_reason, stop_reason, connect_ts is not null or seat_deadline_ts is not null as ends
    from players join lobbies on lobbies.lobby_id = players.lobby_id where players.namespace_id = ${namespace_id}`);
  const seats = new Map(rows.map((row) => [row.player_id, row]));
  const faults: string[] = [];
  const known = new Set<string>();
  for (const { token, lobby_id, has_left } of race.answered) {
    const { player_id } = await race.tokens.verifyKind(token, ['player']);
    const seat = seats.get(player_id);
    if (known.has(player_id)) faults.push(`${player_id} got two seats`);
    known.add(player_id);
    if (!seat) faults.push(`${player_id} has no row`);
    else if (seat.lobby_id !== lobby_id) faults.push(`${player_id} has a seat in another lobby than in the answer`);
    else if (seat.remove_reason === 'lobby_stopped' && seat.stop_reason === null) faults.push(`${lobby_id} runs`);
    else if (!has_left && ![null, 'lobby_stopped'].includes(seat.remove_reason))
      faults.push(`${player_id} was removed`);
    else if (has_left && seat.remove_reason === null) faults.push(`${player_id} still has a seat after leaving`);
  }
  const unknown = rows.filter(({ player_id, remove_reason }) => remove_reason === null && !known.has(player_id));
  if (unknown.length > race.unanswered) faults.push(`${unknown.length} seats belong to no answer`);
  const [waiting] = await race.database.queries.execute<{ count: number }>(sql`
    select count(*)::int as count from queued_finds where namespace_id = ${namespace_id}`);
  if (waiting?.count !== 0) faults.push(`${waiting?.count} finds wait without a request`);
  for (const { player_id } of unknown.filter(({ ends }) => !ends))
    faults.push(`${player_id} has a seat that never ends`);
  return [...faults, ...(await auditLobbies(race, seats))];
}

/** Returns seats in lobbies that their requests did not search, and lobbies with too many players, by the rules. */
async function auditLobbies(race: Race, seats: Map<string, Seat>): Promise<string[]> {
  const lobbies = new Map((await readLobbies(race)).map((lobby) => [lobby.lobby_id, lobby]));
  const faults: string[] = [];
  const seated_by_lobby = new Map<string, Map<AnsweredSeat['request'], number>>();
  for (const { token, lobby_id, request } of race.answered) {
    const lobby = lobbies.get(lobby_id);
    if (!lobby) faults.push(`${lobby_id} does not exist`);
    else if (request.search && !suits({ ...lobby, is_closed: false }, request.search))
      faults.push(`${lobby_id} does not suit ${JSON.stringify(request.search)}`);
    const { player_id } = await race.tokens.verifyKind(token, ['player']);
    if (seats.get(player_id)?.remove_reason !== null) continue;
    const arrivals = seated_by_lobby.get(lobby_id) ?? new Map<AnsweredSeat['request'], number>();
    seated_by_lobby.set(lobby_id, arrivals.set(request, (arrivals.get(request) ?? 0) + 1));
  }
  for (const [lobby_id, arrivals] of seated_by_lobby) {
    const lobby = lobbies.get(lobby_id);
    // A party counts against its own maximum although some of it have left.
    const seated = [...arrivals].map(([{ kind, players }, remaining]) => ({ kind, players, remaining }));
    if (lobby && !haveRoom({ maxima: lobby.maxima, taken: 0 }, seated)) faults.push(`${lobby_id} has too many players`);
  }
  return faults;
}

/**
 * Sends some finds one after the other once no other request is active. Returns what is wrong, and how many got seats: no
 * process may refuse a find for which the rules have a free seat, or give it a lobby that the rules do not allow.
 */
export async function findWithoutRace(
  race: Race,
  chance: Chance,
  finds: number,
): Promise<{ faults: string[]; seated: number }> {
  const faults: string[] = [];
  let seated = 0;
  const ending = new AbortController();
  const reporting = reportReady(race, chance, ending.signal);
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
    if (typeof reply === 'string') throw new Error(`a process does not answer: ${reply}`);
    const expected = open.length > 0 ? '200' : '400 MATCHMAKER_NO_AVAILABLE_LOBBIES';
    if (reply.outcome !== expected) faults.push(`${reply.outcome} with ${open.length} open lobbies`);
    if (reply.outcome !== '200') continue;
    seated += 1;
    const { lobby, player, players = [player] } = reply.body;
    if (!open.some(({ lobby_id }) => lobby_id === lobby.lobby_id)) faults.push(`${lobby.lobby_id} is not open`);
    const request = { kind: 'find', players: wanted.players, search } as const;
    race.answered.push(...players.map(({ token }) => ({ lobby_id: lobby.lobby_id, request, token, has_left: false })));
  }
  ending.abort();
  await reporting;
  return { faults, seated };
}

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
