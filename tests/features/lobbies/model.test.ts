import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { createFixedClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { deploy } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { type Matchmaker, OWN_REGION, openMatchmaker } from '../../support/matchmaker/matchmaker.ts';
import { commands } from '../../support/matchmaker/matchmaker-commands.ts';
import { VERSIONS, type VersionName } from '../../support/matchmaker/matchmaker-modes.ts';
import { Oracle } from '../../support/matchmaker/matchmaker-oracle.ts';
import { createRun } from '../../support/matchmaker/matchmaker-run.ts';
import { openTestService } from '../../support/service.ts';

/** CI runs all of them (MUSTER_TEST_LONG). */
const RUNS = IS_FULL_LENGTH ? 1_000 : 100;
const COMMANDS_MAX = 30;
const SEARCH_MS = 1_200_000;
/** Beginnings of outcomes that 100 runs have at least ten times. */
const OFTEN = [
  'find new lobby',
  'find seat',
  'find MATCHMAKER_NO_AVAILABLE_LOBBIES',
  'find MATCHMAKER_TOO_MANY_LOBBIES',
  'find MATCHMAKER_PARTY_TOO_LARGE',
  'join seat',
  'join MATCHMAKER_LOBBY_FULL',
  'join MATCHMAKER_LOBBY_NOT_FOUND',
  'create new lobby',
  'rush find seat',
  'rush find MATCHMAKER_NO_AVAILABLE_LOBBIES',
  'rush join seat',
  'wait',
  'abort while in the queue',
  'connected ',
  'connected by several ',
  'connection lost',
  'disconnected',
  'ready',
  'close',
  'open',
  'removed',
  'server ends',
];
/** Those that 1,000 runs have at least ten times. */
const SELDOM = [
  'find MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
  'find MATCHMAKER_AUTO_CREATE_FAILED',
  'join MATCHMAKER_LOBBY_STOPPED',
  'join MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
  'create MATCHMAKER_TOO_MANY_LOBBIES',
  'rush find MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
  'connected MATCHMAKER_PLAYER_REMOVED',
  'connected MATCHMAKER_PLAYER_ALREADY_CONNECTED',
  'queued ',
  'version new',
  'version old',
];
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);

let opened: AsyncDisposableStack;
let matchmaker: Matchmaker;
let inspector: Inspector;
/** Each run has a namespace, of which a game may have 1,000. The search for a smaller failure runs some more. */
const GAMES = 4;
const RUNS_OF_A_GAME = 900;
const games: { game_id: string; versions: Record<VersionName, string> }[] = [];
const clock = createFixedClock();

beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address: database_address } = opened.use(await openTestDatabase());
  matchmaker = opened.use(await openMatchmaker({ database_address, clock }));
  inspector = opened.use(openInspector({ database_address }));
  await matchmaker.datacenters.register({ slug: OWN_REGION, name: 'Here', coordinates: undefined });
  await matchmaker.datacenters.register({ slug: 'far', name: 'Far', coordinates: undefined });
  // For the reads of the test, which the service does not have.
  await matchmaker.database.queries.execute(sql`create index on players (namespace_id)`);
  await using service = await openTestService({}, { database_of: { database_address, clock } });
  for (let number = 0; number < GAMES; number += 1) {
    const made = await makeControlledGame(service, { game_modes: toGameModes('old') });
    const matchmaking = { ...made.matchmaker, game_modes: toGameModes('new') };
    const versions = { old: made.version_id, new: await deploy(service.api, made, matchmaking) };
    games.push({ game_id: made.game_id, versions });
  }
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

test(`model: in ${RUNS} random runs of commands the matchmaker does what its oracle predicts`, async () => {
  console.log(`seed ${seed} (MUSTER_TEST_SEED)`);
  const counts = new Map<string, number>();
  let number = 0;
  const lobbies_max = fc.constantFrom(1, 1, 2, 2, 3, 4, 8);
  const players_max = fc.constantFrom(1_000, 1_000, 1_000, 3, 6);
  const property = fc.asyncProperty(commands(COMMANDS_MAX), lobbies_max, players_max, async (all, limit, players) => {
    number += 1;
    const game = games[Math.floor(number / RUNS_OF_A_GAME)];
    if (!game) throw new Error('there is no game for another run');
    const model = new Oracle(limit, clock.now().getTime(), players);
    const real = await createRun({
      matchmaker,
      inspector,
      clock,
      game,
      name_id: `run-${number}`,
      oracle: model,
      counts,
    });
    try {
      await fc.asyncModelRun(() => ({ model, real }), all);
      await real.end();
    } finally {
      await real.sweep();
    }
  });
  // Reports a failure in time, even if the search for a smaller one is not complete.
  await fc.assert(property, { numRuns: RUNS, seed, interruptAfterTimeLimit: SEARCH_MS, markInterruptAsFailure: true });
  const tally = [...counts].toSorted(([one], [other]) => one.localeCompare(other));
  if (IS_FULL_LENGTH) console.log(tally.map(([what, count]) => `${count} ${what}`).join('; '));
  const [expected, times_min] = IS_FULL_LENGTH ? [[...OFTEN, ...SELDOM], RUNS / 200] : [OFTEN, 1];
  const countOf = (what: string) => tally.reduce((sum, [name, count]) => sum + (name.startsWith(what) ? count : 0), 0);
  expect(expected.filter((what) => countOf(what) < times_min)).toEqual([]);
  expect(await inspector.faults()).toEqual([]);
}, 1_800_000);

/** Returns the game modes of the oracle as a version has them. */
function toGameModes(version: VersionName): Record<string, object> {
  const modes = Object.entries(VERSIONS[version]).map(([name, mode]) => {
    const { maxima, regions, is_taggable, is_joinable, creates, idle_max } = mode;
    const create = {
      enabled: creates.length > 0,
      enable_public: creates.includes('public'),
      enable_private: creates.includes('private'),
    };
    return [
      name,
      {
        max_players: maxima.normal,
        max_players_direct: maxima.direct,
        max_players_party: maxima.party,
        regions: Object.fromEntries(regions.map((slug) => [slug, { idle_lobbies: { min: 0, max: idle_max } }])),
        taggable: is_taggable,
        actions: { join: { enabled: is_joinable }, create },
      },
    ];
  });
  return Object.fromEntries(modes);
}
