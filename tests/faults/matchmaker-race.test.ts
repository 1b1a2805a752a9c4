import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openExternalDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeControlledGame } from '../support/game-server.ts';
import { openInspector } from '../support/inspector.ts';
import { openChance } from '../support/matchmaker/chance.ts';
import { NOWHERE, openRace, play, reportReady } from '../support/matchmaker/race.ts';
import { audit, findWithoutRace, waitForEmptyQueue } from '../support/matchmaker/race-audit.ts';
import { makeHome } from '../support/program.ts';

const CLIENTS = 64;
const REQUESTS = IS_FULL_LENGTH ? 10_000 : 2_000;
const LOBBIES = 50;
const CHECK_EVERY_MS = 50;
const FINDS_AFTERWARDS = 40;
/** Long, for busy machines. */
const TEST_TIMEOUT_MS = 900_000;
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);

const EVEN = { max_players: 8, max_players_direct: 8, max_players_party: 8 };
const STEPPED = { max_players: 6, max_players_direct: 8, max_players_party: 7 };

test(
  `race: ${CLIENTS} clients send ${REQUESTS} requests for ${LOBBIES} lobbies to two processes, one of which is killed: every seat is accounted for`,
  async () => {
    console.log(`seed ${seed} (MUSTER_TEST_SEED)`);
    await using database = await openExternalDatabase();
    const settings = { MUSTER_DEMO: 'off', DATABASE_URL: database.url };
    await using near = await makeHome(settings);
    const program = await near.start();
    await using far = await makeHome({ ...settings, MUSTER_DATACENTER: 'far', MUSTER_PUBLIC_URL: program.url });
    const other = await far.start();
    await using inspector = openInspector({ database_address: { url: database.url } });
    const game = await makeControlledGame(program, {
      game_modes: { even: EVEN, stepped: STEPPED },
      lobby_count_max: LOBBIES,
    });
    const race = await openRace(program, database.url, game);
    await using connections = race.database;
    race.programs.push(other);
    await connections.queries.execute(sql`
    insert into datacenters (datacenter_id, slug, name, create_ts)
    values (gen_random_uuid(), ${NOWHERE}, 'Nowhere', now())`);
    await connections.queries.execute(sql`select pg_notify('muster_changes', '1 datacenters')`);

    const ending = new AbortController();
    const started = performance.now();
    const reporting = reportReady(race, openChance(seed, CLIENTS), ending.signal);
    const watching = (async () => {
      let check_count = 0;
      let most = 0;
      for (; !ending.signal.aborted; check_count += 1) {
        race.faults.push(...(await inspector.faults()));
        most = Math.max(most, (await inspector.lobbiesOf(game.namespace_id)).length);
        await Bun.sleep(CHECK_EVERY_MS);
      }
      return { check_count, most };
    })();
    const playing = Promise.all(
      Array.from({ length: CLIENTS }, (_, index) => play(race, openChance(seed, index), REQUESTS)),
    );
    const killing = (async () => {
      while (race.sent_count < REQUESTS / 4 && !ending.signal.aborted) await Bun.sleep(CHECK_EVERY_MS);
      await program.stop('SIGKILL');
      race.programs[0] = await near.start();
      return race.sent_count;
    })();
    const seconds = playing.then(() => Math.round((performance.now() - started) / 100) / 10);
    const all = Promise.all([seconds, killing]).finally(() => ending.abort());
    const [[took_s, back_at], { check_count, most }] = await Promise.all([all, watching, reporting]);
    const outcomes = [...race.outcomes].toSorted().map(([outcome, count]) => `${count} ${outcome}`);
    console.log(
      `${race.sent_count} requests in ${took_s} s, ${race.answered.length} seats, ${race.unanswered} seats unanswered, `,
    );
    console.log(`up to ${most} lobbies, ${check_count} checks, back at ${back_at}; ${outcomes.join('; ')}`);
    await waitForEmptyQueue(race);
    const afterwards = await findWithoutRace(race, openChance(seed, CLIENTS + 1), FINDS_AFTERWARDS);
    expect(afterwards.seated).toBeGreaterThan(0);
    race.faults.push(...afterwards.faults);
    race.faults.push(...(await audit(race)), ...(await inspector.faults()));
    expect(race.faults.slice(0, 10)).toEqual([]);
    expect(await inspector.deadlocks()).toBe(0);
    expect(most).toBeLessThanOrEqual(LOBBIES);
    expect(race.outcomes.get('find 400 MATCHMAKER_TOO_MANY_LOBBIES')).toBeGreaterThan(0);
    expect(race.unanswered).toBeGreaterThan(0);
    expect(back_at).toBeLessThan(REQUESTS);
    await Promise.all(race.programs.map((one) => one.stop('SIGINT')));
  },
  TEST_TIMEOUT_MS,
);
