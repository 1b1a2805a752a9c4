import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { findServerProcesses } from '../support/processes.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { outcomeOf } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

/** In CI, more servers than one round ends. */
const SERVERS = IS_FULL_LENGTH ? 120 : 15;

/** On a busy machine, each server takes a second to start and to end. */
const TEST_TIMEOUT_MS = 900_000;
const WAIT_MS = 240_000;

const opened = new AsyncDisposableStack();
let database: Database;
let home: Home;
let other_home: Home;
beforeAll(async () => {
  const { url } = opened.use(await openExternalDatabase());
  const settings = { DATABASE_URL: url, MUSTER_DEMO: 'off', MUSTER_LOG: 'info', MUSTER_SERVERS_PER_GROUP_MAX: '500' };
  home = opened.use(await makeHome(settings));
  other_home = opened.use(await makeHome(settings));
  await mkdir(join(home.data_directory, 'objects'));
  await symlink(join(home.data_directory, 'objects'), join(other_home.data_directory, 'objects'));
  database = opened.use(openDatabase({ url }, 1));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

interface Row extends Record<string, unknown> {
  server_id: string;
  is_started: boolean;
  is_destroyed: boolean;
  is_ended: boolean;
  /** The ports that are not released yet. */
  ports: number;
}

async function rowsOf(game: TestGame): Promise<Row[]> {
  const rows = await database.queries.execute<Row>(sql`
    select server_id, started_at is not null as is_started,
      destroyed_at is not null as is_destroyed, ended_at is not null as is_ended,
      (select count(*)::int from server_ports where server_ports.server_id = servers.server_id and release_ts is null) as ports
    from servers where game_id = ${game.game_id} order by server_id limit 1000`);
  return [...rows];
}

/** Starts servers of a new game, each with a port and a child process. */
async function startMany(program: Program): Promise<TestGame> {
  const game = await makeGame(program.api, program.administrator_token);
  const { bodyOf, create } = serversOf(program, game);
  const body = await bodyOf(await uploadShell(program.api, game, 'sleep 600 & wait'), {
    network: { ports: { game: { protocol: 'tcp' } } },
  });
  for (let index = 0; index < SERVERS; index += 1) expect((await create(body)).status).toBe(200);
  await waitFor(
    async () => (await rowsOf(game)).every(({ is_started }) => is_started),
    'all servers to start',
    WAIT_MS,
  );
  return game;
}

/** Destroys all servers of a game concurrently; the answers may be lost. Returns the outcomes of those that came. */
async function destroyAll(program: Program, game: TestGame): Promise<string[]> {
  const { destroy } = serversOf(program, game);
  const rows = await rowsOf(game);
  const settled = await Promise.allSettled(rows.map(({ server_id }) => destroy(server_id)));
  return settled.flatMap((one) => (one.status === 'fulfilled' ? outcomeOf(one.value) : []));
}

/** Destroys all servers of a game, each through all programs. Repeats requests that a busy machine has refused. */
async function ensureAllDestroyed(programs: readonly Program[], game: TestGame): Promise<void> {
  await waitFor(
    async () => {
      const outcomes = (await Promise.all(programs.map((program) => destroyAll(program, game)))).flat();
      expect(outcomes.filter((outcome) => outcome !== '200' && !outcome.startsWith('503 '))).toEqual([]);
      return (await rowsOf(game)).every(({ is_destroyed }) => is_destroyed);
    },
    'all servers to be destroyed',
    WAIT_MS,
  );
}

const endedOf = async (game: TestGame) => (await rowsOf(game)).filter(({ is_ended }) => is_ended).length;

/** Waits until all servers of a game have ended and nothing of them remains. */
async function expectAllEnded(game: TestGame, { data_directory }: Home): Promise<void> {
  await waitFor(async () => (await endedOf(game)) === SERVERS, 'all servers to end', WAIT_MS);
  const rows = await rowsOf(game);
  expect(rows.filter(({ ports }) => ports > 0)).toEqual([]);
  expect(rows.flatMap(({ server_id }) => findServerProcesses(server_id))).toEqual([]);
  await waitFor(() => readdirSync(join(data_directory, 'servers')).length === 0, 'their files to be removed');
}

/** Returns how often the programs logged the end of each server. */
function loggedEnds(...programs: Program[]): Map<string, number> {
  const ends = new Map<string, number>();
  for (const line of programs.flatMap((program) => program.output().split('\n'))) {
    const [, server_id] = /"server_id":"([^"]+)".*"event":"server_ended"/.exec(line) ?? [];
    if (server_id !== undefined) ends.set(server_id, (ends.get(server_id) ?? 0) + 1);
  }
  return ends;
}

const failuresOf = (program: Program) =>
  program
    .output()
    .split('\n')
    .filter((line) => /"event":"(server_step_failed|loop_failed|unexpected_failure|service_stopped_late)"/.test(line));

describe('many servers end', () => {
  test(
    'the service is killed during a round: the next start ends all of them',
    async () => {
      const program = await home.start();
      const game = await startMany(program);
      const destroying = destroyAll(program, game);
      await waitFor(async () => (await endedOf(game)) > 0, 'the first round to be recorded');
      await program.stop('SIGKILL');
      await destroying;
      const next = await home.start();
      await ensureAllDestroyed([next], game);
      await expectAllEnded(game, home);
      expect(failuresOf(next)).toEqual([]);
      expect(await next.stop('SIGTERM')).toBe(0);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'the service is stopped during a round: it ends in time, and the next start ends the remaining servers',
    async () => {
      const program = await home.start();
      const game = await startMany(program);
      const destroying = destroyAll(program, game);
      await waitFor(
        async () => (await rowsOf(game)).some(({ is_destroyed }) => is_destroyed),
        'the first server to be destroyed',
      );
      expect(await program.stop('SIGTERM')).toBe(0);
      await destroying;
      expect(failuresOf(program)).toEqual([]);
      const next = await home.start();
      await ensureAllDestroyed([next], game);
      await expectAllEnded(game, home);
      expect([...loggedEnds(program, next).values()].filter((times) => times > 1)).toEqual([]);
      expect(await next.stop('SIGTERM')).toBe(0);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'servers of one game on two machines: each end is logged once, by its own machine',
    async () => {
      const programs = [await home.start(), await other_home.start()] as const;
      const game = await startMany(programs[0]);
      await ensureAllDestroyed(programs, game);
      for (const one of [home, other_home]) await expectAllEnded(game, one);
      for (const program of programs) {
        expect(failuresOf(program)).toEqual([]);
        expect(loggedEnds(program).size).toBeGreaterThan(0);
        expect(await program.stop('SIGTERM')).toBe(0);
      }
      expect([...loggedEnds(...programs).values()]).toEqual(Array.from({ length: SERVERS }, () => 1));
    },
    TEST_TIMEOUT_MS,
  );
});
