// Measures the hub in Chromium: `bun bench/hub.ts`, `--quick` for a minute. The first view in a browser with a new profile,
// a find that becomes a seat on a page, and a page with 5,000 lobbies of which 50 change in each second.
import { measureFirstView } from './hub/first-view.ts';
import { measureList } from './hub/list.ts';
import { measureSeats } from './hub/seats.ts';
import { openManyLobbies } from './many-lobbies.ts';
import { type Goal, printGoals, within } from './report.ts';
import { runBench } from './run.ts';
import { percentile, type Samples } from './samples.ts';

const LOBBIES = 5_000;
const FIRST_VIEW_MS = 1_000;
const SEAT_MS = 150;
const SECONDS = process.argv.includes('--quick') ? 10 : 60;

await runBench(async (opened) => {
  const one_lobby = await measureOne(opened);
  const many = await openManyLobbies(opened, LOBBIES);
  printGoals([...one_lobby, ...(await measureList(many, await pathOf(many), SECONDS))]);
});

/** Measures the first view and a seat, with one lobby. */
async function measureOne(opened: AsyncDisposableStack): Promise<Goal[]> {
  await using opened_for_one = opened.use(new AsyncDisposableStack());
  const one = await openManyLobbies(opened_for_one, 1);
  const [, form, games] = await measureFirstView(opened_for_one, one.program);
  const [, seat] = await measureSeats(opened_for_one, one, await pathOf(one));
  return [
    goalOf('the form to log in, median', FIRST_VIEW_MS, form, 0.5),
    goalOf('the list of games, median', FIRST_VIEW_MS, games, 0.5),
    goalOf('a seat after the find was answered, p95', SEAT_MS, seat, 0.95),
  ];
}

function goalOf(what: string, limit_ms: number, samples: Samples | undefined, part: number): Goal {
  return within(what, limit_ms, samples ? percentile(samples, part) : Number.NaN);
}

/** Returns the path of the page with the lobbies of the namespace. */
async function pathOf({ program, game }: Awaited<ReturnType<typeof openManyLobbies>>): Promise<string> {
  const token = program.administrator_token;
  const answer = await program.api.ok('GET', `/cloud/games/${game.game_id}`, { token });
  return `/hub/${answer.game.name_id}/prod`;
}
