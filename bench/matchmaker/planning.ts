import { LobbyIndex } from '../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import { planSeats } from '../../src/features/lobbies/matchmaking/rounds/planner.ts';
import type { SeatRequest } from '../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { type Goal, middleOf, printTable, show, within } from '../report.ts';
import type { Plan } from './plan.ts';

const FINDS = 512;
const REPETITIONS = 100;
const POOL = { version_id: 'v', game_mode: 'default', region: 'local' };
const MAXIMA = { max_players_normal: 100, max_players_direct: 100, max_players_party: 100 };

/** Measures how long the largest round blocks the event loop. */
export function measurePlanning({ many }: Plan): Goal {
  const index = new LobbyIndex();
  const open = { ...POOL, ...MAXIMA, tags: {}, is_closed: false, publicity: null };
  for (let number = 0; number < many; number += 1) {
    index.set({ ...open, lobby_id: `lobby ${number}`, player_count: number % 100 });
  }
  const blocked: number[] = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    const requests = Array.from({ length: FINDS }, makeFind);
    const started = performance.now();
    planSeats(requests, () => index);
    blocked.push(performance.now() - started);
  }
  const longest = Math.max(...blocked);
  printTable(`Planning a round of ${FINDS} finds among ${show.perSecond(many)} lobbies`, [
    ['p50 ms', 'longest'],
    [middleOf(blocked).toFixed(2), longest.toFixed(2)],
  ]);
  return within(
    `the event loop blocked by a round of ${FINDS} finds among ${show.perSecond(many)} lobbies`,
    10,
    longest,
  );
}

function makeFind(_: unknown, number: number): SeatRequest {
  const address = `10.0.${number >> 8}.${number & 255}`;
  return {
    kind: 'find',
    player_id: Bun.randomUUIDv7(),
    namespace_id: 'n',
    game_id: 'g',
    version_id: 'v',
    address,
    client: { name: address, players_max: 8 },
    search: { game_modes: ['default'], regions: ['local'], tags: {}, new_lobby: undefined },
  };
}
