import { expect } from 'bun:test';
import type { FindBody } from '../../../src/features/lobbies/wire.ts';
import type { SeatRequestBody, SentRequest } from './matchmaker.ts';
import type { Oracle } from './matchmaker-oracle.ts';
import { type Join, joinBody } from './matchmaker-requests.ts';
import type { Result, Run } from './matchmaker-run.ts';
import { type Arrival, haveRoom } from './matchmaking-rules.ts';
import type { LobbyState } from './matchmaking-state.ts';

interface Finished {
  request: SentRequest;
  result: Result;
}

/** Sends several requests at once. Whatever their order, each seat must be allowed, and each refusal possible. */
export async function rush(oracle: Oracle, real: Run, requests: (FindBody | Join)[]): Promise<void> {
  const wanted = requests.map((body, number): SeatRequestBody => {
    const client = 1 + (number % 2);
    if ('game_modes' in body) return { kind: 'find', body, client };
    const lobby = oracle.lobbies[body.number % Math.max(1, oracle.lobbies.length)];
    return { kind: 'join', body: joinBody(lobby, body.players), client };
  });
  const before = [...oracle.lobbies];
  const all = wanted.map((one) => real.ask(one));
  const finished = await Promise.all(
    all.map(async (request): Promise<Finished> => ({ request, result: await real.resultOf(request) })),
  );
  await recordNewLobbies(oracle, real, finished);
  const arrivals = new Map<LobbyState, Arrival[]>();
  for (const { request, result } of finished) {
    real.count(`rush ${request.wanted.kind} ${'code' in result ? result.code : 'seat'}`);
    if ('code' in result) continue;
    const lobby = oracle.lobby(result.lobby_id);
    if (!lobby) throw new Error(`no request could create lobby ${result.lobby_id}`);
    const { kind, body, client = 1 } = request.wanted;
    // A find overtakes no find that waits.
    if (kind === 'find') expect(oracle.isOpenTo(lobby, body)).toBe(true);
    else expect(oracle.join(lobby, client, 0)).toEqual({ among: [lobby] });
    const arrival: Arrival = { kind: kind === 'find' ? 'find' : 'join', players: body.players ?? 1 };
    arrivals.set(lobby, [...(arrivals.get(lobby) ?? []), arrival]);
  }
  for (const [lobby, arrived] of arrivals) expect(haveRoom(lobby, arrived)).toBe(true);
  await recordAllSeats(oracle, real, finished, before);
  for (const client of [1, 2]) expect(oracle.isOver(client, 0)).toBe(false);
  for (const { request, result } of finished) {
    if (!('code' in result)) continue;
    expect(possibleCodes(oracle, request.wanted, before)).toContain(result.code);
    await real.checkReceipt(request, { code: result.code });
  }
}

/** Records lobbies that the oracle does not have yet: each is one that a request seated there would create. */
async function recordNewLobbies(oracle: Oracle, real: Run, finished: Finished[]): Promise<void> {
  const arrivals = finished.flatMap(({ request, result }) =>
    'code' in result ? [] : [{ ...result, wanted: request.wanted }],
  );
  const groups = Map.groupBy(arrivals, ({ lobby_id }) => lobby_id);
  for (const [lobby_id, arrived] of groups) {
    if (oracle.lobby(lobby_id)) continue;
    // Any request seated there: the first one may have lost a race for a seat in another lobby.
    const creators = arrived.filter(({ wanted }) => wanted.kind === 'find' && !wanted.body.prevent_auto_create_lobby);
    const candidates = creators.flatMap(({ wanted }) =>
      wanted.kind === 'find' ? (oracle.target(wanted.body) ?? []) : [],
    );
    const are_made = await Promise.all(candidates.map((made) => real.hasTraits(lobby_id, made)));
    const makes = candidates[are_made.indexOf(true)];
    if (!makes) throw new Error(`no request was to create lobby ${lobby_id}`);
    oracle.createLobby(lobby_id, makes);
  }
  expect(oracle.running_count).toBeLessThanOrEqual(oracle.limits.lobby_count_max);
}

async function recordAllSeats(oracle: Oracle, real: Run, finished: Finished[], before: LobbyState[]): Promise<void> {
  for (const { request, result } of finished) {
    if ('code' in result) continue;
    const lobby = oracle.lobby(result.lobby_id);
    if (lobby) await real.recordSeats(request, result, lobby, before.includes(lobby) ? false : undefined);
  }
}

/** Returns the codes that a refused request may have, by the state afterwards: meanwhile seats were only taken. */
function possibleCodes(oracle: Oracle, wanted: SeatRequestBody, before: LobbyState[]): string[] {
  const { client = 1 } = wanted;
  if (wanted.kind === 'create') return [];
  if (wanted.kind === 'join') {
    const lobby = oracle.lobby(wanted.body.lobby_id ?? '');
    const expected = oracle.join(lobby, client, wanted.body.players);
    const codes = 'codes' in expected ? expected.codes : [];
    // The lobby may have been full before the end of its server was noticed.
    return lobby?.is_ending ? [...codes, 'MATCHMAKER_LOBBY_FULL'] : codes;
  }
  const { body } = wanted;
  const expected = oracle.find(body, client);
  const codes = 'codes' in expected ? expected.codes : [];
  // A lobby created meanwhile may be too late for a request that may not create one.
  const open = oracle.lobbiesFor(body).filter((lobby) => before.includes(lobby));
  const is_late = open.length === 0 && body.prevent_auto_create_lobby && !codes.some((code) => !isAboutCapacity(code));
  return is_late ? [...codes, 'MATCHMAKER_NO_AVAILABLE_LOBBIES'] : codes;
}

/** Returns whether a refusal is about capacity, and not about the content of the request. */
const isAboutCapacity = (code: string) =>
  /TOO_MANY_PLAYERS_FROM_SOURCE|TOO_MANY_LOBBIES|NO_AVAILABLE_LOBBIES/.test(code);
