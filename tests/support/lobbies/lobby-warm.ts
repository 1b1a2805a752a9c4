import type { LobbyIndex } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import { missingLobbies } from '../../../src/features/lobbies/rules.ts';
import { freeSeats } from '../matchmaker/matchmaking-rules.ts';
import { isOpenOrPreparing, isUntouched, type LobbyState } from '../matchmaker/matchmaking-state.ts';
import type { SimulatedNamespace } from '../matchmaker/simulated-namespace.ts';
import { newLobby } from './lobby-requests.ts';

const IDS = { namespace_id: 'namespace', game_id: 'game' };
const FAILURES_COUNT_FOR_MS = 600_000;

/** Creates the missing warm lobbies of one pool. Returns their number, and records a fault if it is wrong. */
export function keepLobbiesWarm(namespace: SimulatedNamespace, min: number): number {
  const version_id = namespace.version;
  const pool = { namespace_id: 'namespace', version_id, game_mode: 'red', region: 'here' };
  const wanted = [{ ...pool, min }];
  const isOf = ({ version, game_mode, region }: LobbyState) =>
    version === version_id && game_mode === 'red' && region === 'here';
  const isIdle = (one: LobbyState) => one.seated.size === 0 && isOpenOrPreparing(one, namespace.now_ms);
  const count = namespace.running().filter((one) => isOf(one) && isIdle(one)).length;
  const failed = namespace.lobbies.filter(
    (one) =>
      isOf(one) &&
      isUntouched(one) &&
      one.create_ms > namespace.now_ms - FAILURES_COUNT_FOR_MS &&
      (one.stop_reason === 'server_ended' || one.stop_reason === 'not_ready_in_time'),
  );
  const last_ms = Math.max(...failed.map(({ stop_ms = 0 }) => stop_ms));
  const failing = failed.length > 0 ? [{ ...pool, failures: failed.length, last_ts: new Date(last_ms) }] : [];
  const missing = missingLobbies(wanted, [{ ...pool, count }], failing, new Date(namespace.now_ms));
  const created = missing.reduce((sum, one) => sum + one.count, 0);
  const may =
    failed.length > 0 && namespace.now_ms < last_ms + Math.min(60_000, 1_000 * 2 ** failed.length) ? 0 : Infinity;
  const expected = Math.min(may, Math.max(0, min - count));
  if (created !== expected) namespace.addFault(`${created} warm lobbies are created where ${expected} are missing`);
  const lobby = newLobby('red', 'here', {}, null);
  for (let one = 0; one < created; one += 1) namespace.createPlanned({ ...IDS, version_id, lobby, first_requests: [] });
  return created;
}

/** Checks that the index of a process that has read all changes has the current state of a lobby. */
export function checkMemory(namespace: SimulatedNamespace, index: LobbyIndex, lobby: LobbyState): void {
  const { lobby_id, version, game_mode, region, tags } = lobby;
  const seen = index.get(lobby_id);
  if (lobby.is_ending && !seen) return;
  if (seen?.player_count !== lobby.taken)
    namespace.addFault(`${lobby_id} is indexed with ${seen?.player_count} players`);
  const pool = [...index.fullestFirst({ version_id: version, game_mode, region }, tags)].map((one) => one.lobby_id);
  const has_room = freeSeats(lobby, { kind: 'find', players: 1 }) > 0;
  const is_open = !lobby.is_closed && lobby.publicity !== 'private' && has_room;
  if (pool.includes(lobby_id) !== is_open) namespace.addFault(`${lobby_id} is ${is_open ? 'not ' : ''}in the pool`);
}
