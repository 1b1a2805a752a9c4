import { atLeast, type Goal, printTable, show } from '../report.ts';
import type { Arena } from './arena.ts';
import type { Callers } from './calls.ts';
import type { Plan } from './plan.ts';
import {
  cellsOf,
  measureCalls,
  medianOf,
  type Target,
  TURN_HEADS,
  type Turn,
  takeTurn,
  withAttempts,
} from './targets.ts';

const CLIENTS = 64;
/** Few enough that several players join each, because the first one does not leave. */
const JOINED_LOBBIES = 500;
const CONNECTED_PER_SECOND_MIN = 14_000;
/** Longer than all players of a turn take to connect, or to leave. */
const REPORTING_S = 60;

/** Measures players who join lobbies by id, each a different one than the player before, then connect, then leave. */
export async function measureJoins(arena: Arena, elysia: Target, callers: Callers, plan: Plan): Promise<Goal[]> {
  const { seconds, repetitions } = plan;
  const [empty, joins, arrivals, departures]: [Turn[], Turn[], Turn[], Turn[]] = [[], [], [], []];
  await arena.lobbies.empty(plan);
  const lobby_ids = arena.lobbies.ids.slice(0, JOINED_LOBBIES);
  const headersByLobby = new Map<string, string>();
  for (const lobby_id of lobby_ids) headersByLobby.set(lobby_id, await arena.headersOf(lobby_id));

  const joinLobbies = async () => {
    await arena.lobbies.empty(plan);
    await callers.open(arena.port, CLIENTS);
    const requests = lobby_ids.map((lobby_id) => ({
      headers: arena.headers,
      body: JSON.stringify({ lobby_id }),
    }));
    const calls = { path: '/matchmaker/lobbies/join', requests, seconds, keeps_answers: true };
    return await measureCalls(processesOf(arena), callers, calls);
  };
  /** Reports the player of each answer, as the game server of its lobby does. */
  const reportPlayers = async (what: 'connected' | 'disconnected', answers: string[]) => {
    const requests = answers.map((answer) => {
      const { lobby, player } = JSON.parse(answer);
      const headers = headersByLobby.get(lobby.lobby_id) ?? '';
      return { headers, body: JSON.stringify({ player_token: player.token }) };
    });
    const calls = { path: `/matchmaker/players/${what}`, requests, requests_max: requests.length };
    return await measureCalls(processesOf(arena), callers, { ...calls, seconds: REPORTING_S });
  };

  for (let repetition = -1; repetition < repetitions; repetition += 1) {
    const empty_turn = await takeTurn(elysia, callers, { clients: CLIENTS, seconds });
    const [join_turn, arrival_turn, departure_turn] = await withAttempts(async () => {
      const joined = await joinLobbies();
      const connected = await reportPlayers('connected', joined.answers);
      return [joined, connected, await reportPlayers('disconnected', withoutFirstOfEachLobby(joined.answers))];
    });
    // The first repetition warms up.
    if (repetition < 0) continue;
    empty.push(empty_turn);
    joins.push(join_turn);
    arrivals.push(arrival_turn);
    departures.push(departure_turn);
  }
  const [peer, joined, arrived] = [medianOf(empty), medianOf(joins), medianOf(arrivals)];
  printTable(`Joins, arrivals and departures, ${CLIENTS} clients, each in another lobby`, [
    ['', ...TURN_HEADS],
    [elysia.name, ...cellsOf(peer, peer)],
    ['joins', ...cellsOf(joined, peer)],
    ['players connected', ...cellsOf(arrived, peer)],
    ['players who left', ...cellsOf(medianOf(departures), peer)],
  ]);
  return [
    atLeast("joins/s of Elysia's empty route, 64 clients", 0.2, joined.per_second / peer.per_second),
    {
      what: 'players connected/s, 64 clients, each in another lobby',
      limit: `>= ${show.perSecond(CONNECTED_PER_SECOND_MIN)}`,
      figure: show.perSecond(arrived.per_second),
      is_met: arrived.per_second >= CONNECTED_PER_SECOND_MIN,
    },
  ];
}

/** A lobby that becomes empty ends. */
function withoutFirstOfEachLobby(answers: string[]): string[] {
  const seen = new Set<string>();
  return answers.filter((answer) => {
    const { lobby_id } = JSON.parse(answer).lobby;
    return seen.has(lobby_id) || !seen.add(lobby_id);
  });
}

function processesOf({ program, database_pid }: Arena) {
  return { pid: program.pid, database_pid };
}
