import type { LobbyIndex } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import { missingLobbies } from '../../src/features/lobbies/rules.ts';
import { newLobby } from './lobby-requests.ts';
import type { LobbyWorld, WorldLobby } from './lobby-world.ts';

const PLACE = { namespace_id: 'namespace', game_id: 'game' };
const FAILURES_COUNT_FOR_MS = 600_000;

/** Makes the lobbies that are to be kept warm on one pool. Gives how many they are; notes where it should be others. */
export function keepLobbiesWarm(world: LobbyWorld, version_id: string, min: number): number {
  const pool = { namespace_id: 'namespace', version_id, game_mode: 'red', region: 'here' };
  const wanted = [{ ...pool, min }];
  const isOf = (lobby: WorldLobby) =>
    lobby.version_id === version_id && lobby.game_mode === 'red' && lobby.region === 'here';
  const isIdle = (one: WorldLobby) => one.seats.size === 0 && (!one.is_closed || !one.has_had_players);
  const count = [...world.running.values()].filter((one) => isOf(one) && isIdle(one)).length;
  const failed = [...world.lobbies.values()].filter(
    (one) =>
      isOf(one) &&
      !one.has_had_players &&
      one.create_ms > world.now_ms - FAILURES_COUNT_FOR_MS &&
      (one.stop_reason === 'server_ended' || one.stop_reason === 'not_ready_in_time'),
  );
  const last_ms = Math.max(...failed.map(({ stop_ms = 0 }) => stop_ms));
  const failing = failed.length > 0 ? [{ ...pool, failures: failed.length, last_ts: new Date(last_ms) }] : [];
  const missing = missingLobbies(wanted, [{ ...pool, count }], failing, new Date(world.now_ms));
  const made = missing.reduce((sum, one) => sum + one.count, 0);
  const may = failed.length > 0 && world.now_ms < last_ms + Math.min(60_000, 1_000 * 2 ** failed.length) ? 0 : Infinity;
  const expected = Math.min(may, Math.max(0, (wanted[0]?.min ?? 0) - count));
  if (made !== expected) world.fault(`${made} lobbies are kept warm where ${expected} are missing`);
  const lobby = newLobby('red', 'here', {}, null);
  for (let one = 0; one < made; one += 1) world.found({ ...PLACE, version_id, lobby, first_players: [] });
  return made;
}

/** What a machine remembers after news has come is what there is. */
export function checkMemory(world: LobbyWorld, index: LobbyIndex, lobby: WorldLobby): void {
  const { lobby_id, version_id: of, game_mode, region, tags } = lobby;
  const seen = index.get(lobby_id);
  if (lobby.is_ending && !seen) return;
  if (seen?.player_count !== lobby.player_count) world.fault(`${lobby_id} is remembered with ${seen?.player_count}`);
  const pool = [...index.fullestFirst({ version_id: of, game_mode, region }, tags)].map((one) => one.lobby_id);
  const is_open = !lobby.is_closed && lobby.publicity !== 'private' && lobby.max_players_normal > lobby.player_count;
  if (pool.includes(lobby_id) !== is_open) world.fault(`${lobby_id} is ${is_open ? 'not ' : ''}offered`);
}
