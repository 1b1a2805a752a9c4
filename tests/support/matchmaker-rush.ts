import { expect } from 'bun:test';
import type { FindBody } from '../../src/features/lobbies/wire.ts';
import type { Asking, Wanted } from './matchmaker.ts';
import type { Oracle } from './matchmaker-oracle.ts';
import { type Join, joinBody } from './matchmaker-requests.ts';
import type { Came, Run } from './matchmaker-run.ts';
import { type Arrival, haveRoom } from './matchmaking-rules.ts';
import type { LobbyState } from './matchmaking-state.ts';

interface Told {
  asking: Asking;
  came: Came;
}

/** Several ask at one moment: whatever the order, nobody sits where he may not, and every no is true. */
export async function rush(oracle: Oracle, real: Run, requests: (FindBody | Join)[]): Promise<void> {
  const wanted = requests.map((body, number): Wanted => {
    const client = 1 + (number % 2);
    if ('game_modes' in body) return { kind: 'find', body, client };
    const lobby = oracle.lobbies[body.number % Math.max(1, oracle.lobbies.length)];
    return { kind: 'join', body: joinBody(lobby, body.players), client };
  });
  const before = [...oracle.lobbies];
  const all = wanted.map((one) => real.ask(one));
  const told = await Promise.all(all.map(async (asking): Promise<Told> => ({ asking, came: await real.come(asking) })));
  await openNew(oracle, real, told);
  const arrivals = new Map<LobbyState, Arrival[]>();
  for (const { asking, came } of told) {
    real.count(`rush ${asking.wanted.kind} ${'code' in came ? came.code : 'seat'}`);
    if ('code' in came) continue;
    const lobby = oracle.lobby(came.lobby_id);
    if (!lobby) throw new Error(`no request could create lobby ${came.lobby_id}`);
    const { kind, body, client = 1 } = asking.wanted;
    // A find overtakes no find that waits.
    if (kind === 'find') expect(oracle.isOpenTo(lobby, body)).toBe(true);
    else expect(oracle.join(lobby, client, 0)).toEqual({ among: [lobby] });
    const arrival: Arrival = { kind: kind === 'find' ? 'find' : 'join', players: body.players ?? 1 };
    arrivals.set(lobby, [...(arrivals.get(lobby) ?? []), arrival]);
  }
  for (const [lobby, its] of arrivals) expect(haveRoom(lobby, its)).toBe(true);
  await sitAll(oracle, real, told, before);
  for (const client of [1, 2]) expect(oracle.isOver(client, 0)).toBe(false);
  for (const { asking, came } of told) {
    if (!('code' in came)) continue;
    expect(codesOf(oracle, asking.wanted, before)).toContain(came.code);
    await real.checkReceipt(asking, { code: came.code });
  }
}

/** Lobbies that the oracle does not have yet: each is the one that somebody who came there would have made. */
async function openNew(oracle: Oracle, real: Run, told: Told[]): Promise<void> {
  const arrivals = told.flatMap(({ asking, came }) => ('code' in came ? [] : [{ ...came, wanted: asking.wanted }]));
  const groups = Map.groupBy(arrivals, ({ lobby_id }) => lobby_id);
  for (const [lobby_id, its] of groups) {
    if (oracle.lobby(lobby_id)) continue;
    // Any of them: whoever asked first may have been sent to another lobby before, which did not take him.
    const makers = its.filter(({ wanted }) => wanted.kind === 'find' && !wanted.body.prevent_auto_create_lobby);
    const wishes = makers.flatMap(({ wanted }) => (wanted.kind === 'find' ? (oracle.target(wanted.body) ?? []) : []));
    const are_made = await Promise.all(wishes.map((made) => real.isAsMade(lobby_id, made)));
    const makes = wishes[are_made.indexOf(true)];
    if (!makes) throw new Error(`nobody was to make lobby ${lobby_id}`);
    oracle.createLobby(lobby_id, makes);
  }
  expect(oracle.running_count).toBeLessThanOrEqual(oracle.limits.lobby_count_max);
}

async function sitAll(oracle: Oracle, real: Run, told: Told[], before: LobbyState[]): Promise<void> {
  for (const { asking, came } of told) {
    if ('code' in came) continue;
    const lobby = oracle.lobby(came.lobby_id);
    if (lobby) await real.sit(asking, came, lobby, before.includes(lobby) ? false : undefined);
  }
}

/** The codes that are true of a request that was refused, by what there is afterwards: seats were only taken. */
function codesOf(oracle: Oracle, wanted: Wanted, before: LobbyState[]): string[] {
  const { client = 1 } = wanted;
  if (wanted.kind === 'create') return [];
  if (wanted.kind === 'join') {
    const lobby = oracle.lobby(wanted.body.lobby_id ?? '');
    const expected = oracle.join(lobby, client, wanted.body.players);
    const codes = 'codes' in expected ? expected.codes : [];
    // Others had the last places of a lobby whose server is to end, until it was noticed.
    return lobby?.is_ending ? [...codes, 'MATCHMAKER_LOBBY_FULL'] : codes;
  }
  const { body } = wanted;
  const expected = oracle.find(body, client);
  const codes = 'codes' in expected ? expected.codes : [];
  // One that was made meanwhile may have come too late for those who may make none.
  const open = oracle.lobbiesFor(body).filter((lobby) => before.includes(lobby));
  const is_late = open.length === 0 && body.prevent_auto_create_lobby && !codes.some((code) => !isOfPlaces(code));
  return is_late ? [...codes, 'MATCHMAKER_NO_AVAILABLE_LOBBIES'] : codes;
}

/** Whether a no is about places, and not about what was asked. */
const isOfPlaces = (code: string) => /TOO_MANY_PLAYERS_FROM_SOURCE|TOO_MANY_LOBBIES|NO_AVAILABLE_LOBBIES/.test(code);
