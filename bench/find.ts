// Measures how long a player waits for a lobby: `bun bench/find.ts`. "cold": a game server is started for the player (a
// JavaScript room that calls ready as soon as it runs). "warm": a lobby has a free seat. The peer is the same room
// started by hand, until it has called ready.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { makeRoomGame, READY_SOURCE } from '../tests/support/lobbies/room.ts';
import { commandOf, makeHome } from '../tests/support/program.ts';
import { startByHand } from './by-hand.ts';
import { runBench } from './run.ts';
import { measure, report, type Samples } from './samples.ts';

const REPETITIONS = 60;
const WARM_UP = 5;
const kind = existsSync('dist/muster') ? 'executable' : 'source';

await runBench(async (opened) => {
  const home = opened.use(await makeHome({ MUSTER_DEMO: 'off' }));
  const program = await home.start({ command: commandOf(kind) });
  const { api } = program;
  const cold_game = await makeRoomGame(program, { source: READY_SOURCE, max_players: 1 });
  const warm_game = await makeRoomGame(program, { source: READY_SOURCE, max_players: 2 * REPETITIONS + WARM_UP });
  const find = (token: string) =>
    api.ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });

  const by_hand: Samples = { name: 'the room started by hand', milliseconds: [] };
  const cold: Samples = { name: `cold find, muster ${kind}`, milliseconds: [] };
  const warm: Samples = { name: 'warm find', milliseconds: [] };

  const script = join(home.data_directory, 'room.ts');
  await Bun.write(script, READY_SOURCE);
  for (let repetition = -WARM_UP; repetition < REPETITIONS; repetition += 1) {
    const times = [
      [by_hand, await startByHand(script)],
      [cold, await measure(() => find(cold_game.public_token))],
      [warm, await measure(() => find(warm_game.public_token))],
    ] as const;
    if (repetition >= 0) for (const [samples, time] of times) samples.milliseconds.push(time);
  }

  report('A lobby for a player', [by_hand, cold, warm], 'cold p95 at most 300 ms');
});
