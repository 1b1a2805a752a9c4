import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { createCounters, type Population } from '../../../src/features/counters/counters.ts';
import { bucketOf, bySteps, emptyCounts, merge, percentileOf } from '../../../src/features/counters/rules.ts';
import type { Counts } from '../../../src/features/counters/tables.ts';
import { createTally } from '../../../src/features/counters/tally.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { MINUTE_MS } from '../../../src/platform/units.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOON = Date.UTC(2026, 0, 15, 12);

const muster = shareService();
/** Without a service, whose own loops would remove what is old by its clock. */
let database: Database;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  const { address } = opened.use(await openTestDatabase());
  database = opened.use(openDatabase(address, 3));
}, 300_000);
afterAll(() => opened.disposeAsync());

describe('counters: rules', () => {
  const times = fc.array(fc.double({ min: 0.01, max: 100_000, noNaN: true }), { minLength: 1, maxLength: 200 });

  test('a percentile is never too low, and at most a tenth too high', () => {
    fc.assert(
      fc.property(times, fc.constantFrom(0.5, 0.95, 1), (durations, share) => {
        const find_times: Record<string, number> = {};
        for (const time of durations) find_times[bucketOf(time)] = (find_times[bucketOf(time)] ?? 0) + 1;
        const exact = durations.toSorted((one, other) => one - other)[Math.ceil(durations.length * share) - 1] ?? 0;
        const found = percentileOf(find_times, share) ?? 0;
        // It is rounded to a tenth of a millisecond, and times up to 1 ms share a bucket.
        expect(found).toBeGreaterThanOrEqual(exact - 0.05 - 1e-6);
        expect(found).toBeLessThanOrEqual(Math.max(1, exact * 1.1) + 0.05 + 1e-6);
      }),
    );
    expect(percentileOf({}, 0.95)).toBeUndefined();
  });

  test('merging is the same in any order and grouping', () => {
    const count = fc.integer({ min: 0, max: 1_000 });
    const some = fc.dictionary(fc.constantFrom('1', '2', '17'), count);
    const counts: fc.Arbitrary<Counts> = fc.record({
      players: count,
      lobbies: count,
      refused: some,
      find_times: some,
      seated: fc.record({ find: count, join: count, create: count }),
    });
    fc.assert(
      fc.property(counts, counts, counts, (one, two, three) => {
        expect(merge(one, two)).toEqual(merge(two, one));
        expect(merge(merge(one, two), three)).toEqual(merge(one, merge(two, three)));
        expect(merge(one, emptyCounts())).toEqual(one);
      }),
    );
  });

  test('steps are in order, and one without rows is left out', () => {
    const rowAt = (minute: number) => ({
      ...emptyCounts(),
      start_ts: new Date(NOON + minute * MINUTE_MS),
      players: minute,
    });
    const steps = bySteps([rowAt(7), rowAt(1), rowAt(4), rowAt(16)], 5 * MINUTE_MS);
    expect(steps.map(({ start_ts, counts }) => [start_ts.getTime() - NOON, counts.players])).toEqual([
      [0, 4],
      [5 * MINUTE_MS, 7],
      [15 * MINUTE_MS, 16],
    ]);
  });
});

describe('counters: the tally', () => {
  test('gives each minute once, when it is over, also if the clock goes back', () => {
    let now = NOON;
    const tally = createTally(() => now);
    tally.countSeated('a', 'find', 5);
    expect(tally.take({ is_last: false })).toEqual([]);
    now += MINUTE_MS;
    tally.countRefused('a', 'X');
    expect(tally.take({ is_last: false })).toMatchObject([
      { start_ts: new Date(NOON), counts: { seated: { find: 1 } } },
    ]);
    now -= MINUTE_MS;
    tally.countRefused('b', 'Y');
    expect(tally.take({ is_last: true })).toMatchObject([
      { namespace_id: 'a', start_ts: new Date(NOON + MINUTE_MS), counts: { refused: { X: 1 } } },
      { namespace_id: 'b', start_ts: new Date(NOON), counts: { refused: { Y: 1 } } },
    ]);
    expect(tally.take({ is_last: true })).toEqual([]);
  });
});

/** Opens the counters of a process, without its loops but for the last step of each. */
function openCounters(now: () => number, present: Population[] = []) {
  const failures: unknown[] = [];
  const counters = createCounters({
    database,
    clock: { now: () => new Date(now()) },
    events: { emit: (event) => void ('cause' in event && failures.push(event.cause)) },
    readPopulations: async () => present,
    requireAdministrator: async () => {},
  });
  return {
    counters,
    /** Does what the loops do at the end of a minute, and when the service stops. */
    async keep(): Promise<void> {
      const stopping = new AbortController();
      const { stopped } = counters.startKeeping(stopping.signal);
      stopping.abort();
      await stopped;
      expect(failures).toEqual([]);
    },
  };
}

describe('counters: of several processes', () => {
  test('add up, but for players and lobbies, which the first process counts', async () => {
    const namespace_id = crypto.randomUUID();
    const [one, other] = [3, 5].map((players) => openCounters(() => NOON, [{ namespace_id, players, lobbies: 1 }]));
    if (!one || !other) throw new Error('there are two');
    const refuse = () => Promise.reject(new ServiceError('MATCHMAKER_LOBBY_FULL', {}));
    for (const { counters } of [one, one, other]) await counters.count('find', namespace_id, async () => 'seat');
    await other.counters.count('join', namespace_id, refuse).catch(() => {});
    await other.counters.count('create', namespace_id, () => Promise.reject(new Error('bug'))).catch(() => {});
    const { address } = opened.use(await openTestDatabase());
    const lost = openDatabase(address, 1);
    await lost[Symbol.asyncDispose]();
    const read = async () => await lost.queries.execute(sql`select 1`);
    await other.counters.count('find', namespace_id, read).catch(() => {});
    await one.keep();
    await other.keep();
    // Repeating it changes nothing.
    await one.keep();
    const [step, ...more] = await one.counters.counted.read({ namespace_id, period: 'hour' });
    expect(more).toEqual([]);
    expect(step?.start_ts).toEqual(new Date(NOON));
    expect(step?.counts).toMatchObject({
      players: 3,
      lobbies: 1,
      seated: { find: 3, join: 0, create: 0 },
      refused: { MATCHMAKER_LOBBY_FULL: 1, ERROR: 1, DATABASE_UNAVAILABLE: 1 },
    });
    expect(Object.values(step?.counts.find_times ?? {}).reduce((sum, count) => sum + count, 0)).toBe(3);
  });

  test('are all counted if the clock of the process is set back', async () => {
    const namespace_id = crypto.randomUUID();
    let now = NOON + MINUTE_MS - 100;
    const { counters, keep } = openCounters(() => now);
    const countAt = async (moment: number) => {
      now = moment;
      await counters.count('find', namespace_id, async () => {});
    };
    for (const moved_ms of [0, 200, -200, 200]) await countAt(now + moved_ms);
    await keep();
    for (const moved_ms of [-HOUR_MS, HOUR_MS]) await countAt(now + moved_ms);
    await keep();
    const steps = await counters.counted.read({ namespace_id, period: 'day' });
    expect(steps.reduce((sum, { counts }) => sum + counts.seated.find, 0)).toBe(6);
  });

  test('are counted once in a week that is read while minutes become hours', async () => {
    const namespace_id = crypto.randomUUID();
    const { counters, keep } = openCounters(() => NOON);
    await counters.count('find', namespace_id, async () => {});
    await keep();
    const { reading } = await database.transact(async (tx) => {
      await tx.execute(sql`lock table hour_counters`);
      const reads = counters.counted.read({ namespace_id, period: 'week' });
      await waitFor(async () => {
        const waiting = await muster.database.queries.execute(sql`
          select from pg_stat_activity where wait_event_type = 'Lock' and query like '%from "hour_counters"%'`);
        return waiting.length > 0;
      }, 'the read to wait');
      await tx.execute(sql`
        with moved as (delete from minute_counters where namespace_id = ${namespace_id} returning *)
        insert into hour_counters select namespace_id, start_ts, players, lobbies, seated, refused, find_times from moved`);
      return { reading: reads };
    });
    expect((await reading).map(({ counts }) => counts.seated.find)).toEqual([1]);
  });

  test('are the same for a week, whenever minutes become hours, and are removed after it', async () => {
    const namespace_id = crypto.randomUUID();
    let now = NOON;
    const { counters, keep } = openCounters(() => now);
    const MINUTES = [0, 1, 30, 59, 60, 61, 125, 600];
    for (const minute of MINUTES) {
      now = NOON + minute * MINUTE_MS;
      for (let times = 0; times <= minute % 7; times += 1) await counters.count('find', namespace_id, async () => {});
      await counters.count('join', namespace_id, () => Promise.reject(new ServiceError('ERROR', {}))).catch(() => {});
    }
    await keep();
    const read = (period: 'hour' | 'day' | 'week') => counters.counted.read({ namespace_id, period });
    const week = await read('week');
    expect(week.map(({ counts }) => counts.refused.ERROR)).toEqual([4, 2, 1, 1]);
    const countRows = async () => {
      const rows = await database.queries.execute<{ minutes: number; hours: number }>(sql`
        select (select count(*)::int from minute_counters where namespace_id = ${namespace_id}) as minutes,
          (select count(*)::int from hour_counters where namespace_id = ${namespace_id}) as hours`);
      return [rows[0]?.minutes, rows[0]?.hours];
    };
    expect(await countRows()).toEqual([8, 0]);
    // Of an hour that is partly older than a day, all minutes are kept.
    now = NOON + DAY_MS + 59 * MINUTE_MS;
    await keep();
    expect(await countRows()).toEqual([8, 0]);
    now = NOON + DAY_MS + HOUR_MS;
    await keep();
    expect(await countRows()).toEqual([4, 1]);
    expect(await read('week')).toEqual(week);
    // A minute that comes late, such as that of a process that could not reach its database, joins its hour.
    const late = openCounters(() => now - DAY_MS - 10 * MINUTE_MS);
    await late.counters.count('find', namespace_id, async () => {});
    await late.keep();
    await keep();
    const [first, ...others] = await read('week');
    expect(first?.counts.seated.find).toBe((week[0]?.counts.seated.find ?? 0) + 1);
    expect(others).toEqual(week.slice(1));
    now = NOON + 3 * DAY_MS;
    await keep();
    expect(await countRows()).toEqual([0, 4]);
    expect(await read('week')).toHaveLength(4);
    expect(await read('day')).toEqual([]);
    now = NOON + 8 * DAY_MS;
    await keep();
    expect(await countRows()).toEqual([0, 0]);
  });
});

test('counters: a stop without the database loses the last minute, says so, and succeeds', async () => {
  const { address } = opened.use(await openTestDatabase());
  const lost = openDatabase(address, 1);
  const emitted: string[] = [];
  const counters = createCounters({
    database: lost,
    clock: { now: () => new Date(NOON) },
    events: { emit: (event) => void ('loop' in event && emitted.push(event.loop)) },
    readPopulations: async () => [],
    requireAdministrator: async () => {},
  });
  await counters.count('find', crypto.randomUUID(), async () => {});
  await lost[Symbol.asyncDispose]();
  const stopping = new AbortController();
  stopping.abort();
  await counters.startKeeping(stopping.signal).stopped;
  expect(emitted).toEqual(['counters']);
});

describe('counters: over the API', () => {
  test("are refused for another tenant's namespace, and for an unknown window", async () => {
    const [game, other] = [
      await makeGame(muster.api, muster.administrator_token),
      await makeGame(muster.api, muster.administrator_token),
    ];
    const path = (game_id: string, namespace_id: string) =>
      `/cloud/games/${game_id}/namespaces/${namespace_id}/counters`;
    const read = async (...place: [string, string]) =>
      outcomeOf(await muster.api.get(path(...place), game.cloud_token));
    expect(await read(other.game_id, other.namespace_id)).toBe('404 GAME_NOT_FOUND');
    expect(await read(game.game_id, other.namespace_id)).toBe('404 GAME_ENVIRONMENT_NOT_FOUND');
    expect(await read(game.game_id, `${game.namespace_id}`)).toBe('200');
    const wrong = await muster.api.get(`${path(game.game_id, game.namespace_id)}?window=year`, game.cloud_token);
    expect(outcomeOf(wrong)).toBe('400 API_BAD_QUERY_PARAMETER');
  });

  test('have the finds and refusals of a service that has stopped, and its players', async () => {
    const game = await makeControlledGame(muster, { max_players: 2 });
    const { game_id, namespace_id, cloud_token: token, public_token } = game;
    {
      await using other = await openTestService({}, { database_of: muster });
      // Either machine may start the server, and each keeps its own uploads.
      const buildsOf = ({ config }: Pick<TestService, 'config'>) => join(config.data_directory, 'builds');
      await cp(buildsOf(muster), buildsOf(other), { recursive: true });
      await seatOf(find(other, game));
      await other.api.post('/matchmaker/lobbies/join', public_token, { lobby_id: crypto.randomUUID() });
      await other.api.post('/matchmaker/lobbies/find', public_token, { game_modes: ['unknown'] });
    }
    const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/counters?window=hour`;
    const { steps, step_ms } = await muster.api.ok('GET', path, { token });
    expect(step_ms).toBe(MINUTE_MS);
    const sum = (name: string) =>
      steps.reduce((total: number, step: Record<string, number>) => total + (step[name] ?? 0), 0);
    expect([sum('finds'), sum('joins'), sum('creates')]).toEqual([1, 0, 0]);
    const refused = Object.assign({}, ...steps.map((step: { refused: object }) => step.refused));
    expect(refused).toEqual({ MATCHMAKER_LOBBY_NOT_FOUND: 1, MATCHMAKER_GAME_MODE_NOT_FOUND: 1 });
    expect(steps.some((step: { find_p95_ms?: number }) => (step.find_p95_ms ?? 0) > 0)).toBe(true);
    const day = await muster.api.ok('GET', path.replace('hour', 'day'), { token });
    expect(day.step_ms).toBe(5 * MINUTE_MS);
  });
});
