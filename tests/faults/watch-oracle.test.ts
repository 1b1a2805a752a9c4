import { expect, test } from 'bun:test';
import { openExternalDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { type Chance, openChance } from '../support/matchmaker/chance.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';
import { type Target, WatchHistory } from '../support/watch/watch-history.ts';
import {
  changesOf,
  cutListeners,
  makeWatchableGame,
  openLogWriter,
  type Seats,
  tagServer,
  type WatchableGame,
} from '../support/watch/watchable-game.ts';
import { type WatcherOptions, watchByPolls, watchBySocket } from '../support/watch/watchers.ts';

const WATCHERS = IS_FULL_LENGTH ? 200 : 60;
const CHANGES = IS_FULL_LENGTH ? 2_000 : 120;
/** Watchers may get several changes as one, so changes continue until each has got this many states. */
const BODIES_EACH = IS_FULL_LENGTH ? 10 : 3;
const WRITERS = 10;
/** Faults happen one after the other, within this share of the changes. */
const FAULTS = IS_FULL_LENGTH ? 9 : 5;
const TRIES_AGAIN_AFTER_MS = 25;
/** Each wait has a limit of its own, whose message names it. */
const TEST_TIMEOUT_MS = 900_000;
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);

const SETTINGS = {
  MUSTER_DEMO: 'off',
  // Short, so that many polls end by it.
  MUSTER_WATCH_HOLD_MS: '1500',
  MUSTER_WATCHERS_PER_CALLER_MAX: '1000',
  MUSTER_SOCKETS_PER_CALLER_MAX: '1000',
};

test(
  'watch: while two processes are stopped, killed and cut off, no watcher gets an older state, and all get the last one',
  async () => {
    console.log(`seed ${seed} (MUSTER_TEST_SEED)`);
    await using database = await openExternalDatabase();
    await using near = await makeHome({ ...SETTINGS, DATABASE_URL: database.url });
    const program = await near.start();
    // Both processes have one public address.
    const far_settings = { DATABASE_URL: database.url, MUSTER_DATACENTER: 'far', MUSTER_PUBLIC_URL: program.url };
    await using far = await makeHome({ ...SETTINGS, ...far_settings });
    const homes = [near, far];
    const programs = [program, await far.start()];
    const watchable = await makeWatchableGame(program, { url: database.url });
    await using log_writer = await openLogWriter(watchable);
    await using _connections = watchable.database;

    const leaving = new AbortController();
    const urls = programs.map(({ url }) => url);
    const targets = targetsOf(watchable);
    const histories = Array.from({ length: WATCHERS / 2 / targets.length + 1 }, () => targets)
      .flatMap((all) => all.flatMap((target) => [new WatchHistory(target), new WatchHistory(target)]))
      .slice(0, WATCHERS);
    const watching = histories.map((history, index) => {
      const options: WatcherOptions = { urls, chance: openChance(seed, index), signal: leaving.signal };
      return index % 2 === 0 ? watchByPolls(history, options) : watchBySocket(history, options);
    });
    await waitFor(() => histories.every(({ bodies }) => bodies > 0), 'every watcher to see a state');

    const made = { changes: 0 };
    const isEnough = () => made.changes >= CHANGES && histories.every(({ bodies }) => bodies > BODIES_EACH);
    const writing = Array.from({ length: WRITERS }, (_, index) =>
      write({
        watchable,
        urls,
        made,
        isEnough,
        log_writer: index === 0 ? log_writer : undefined,
        chance: openChance(seed, 1_000 + index),
      }),
    );
    const faults = await causeFaults({ homes, programs, watchable, made, chance: openChance(seed, 2_000) });
    await Promise.all(writing);

    let last: string[] = [];
    try {
      await waitFor(async () => {
        last = await findOutdated(histories, program.url, log_writer.lines);
        return last.length === 0;
      }, 'every watcher to see the current state');
    } catch (error) {
      throw new Error(`${error}\n${last.slice(0, 10).join('\n')}`);
    } finally {
      leaving.abort();
      await Promise.all(watching);
    }
    const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
    console.log(
      `${made.changes} changes and ${log_writer.lines} lines; ${histories.length} watchers had ` +
        `${sum(histories.map(({ bodies }) => bodies))} bodies in ${sum(histories.map(({ connect_count }) => connect_count))} visits; ` +
        faults.join(', '),
    );
    expect(histories.flatMap((history) => history.faults).slice(0, 10)).toEqual([]);
    await Promise.all(programs.map((one) => one.stop('SIGINT')));
  },
  TEST_TIMEOUT_MS,
);

function targetsOf({ game, owner, group, lobby_id, build_id, server_id }: WatchableGame): Target[] {
  const { game_id, namespace_id, public_token } = game;
  const environment = `/games/${game_id}/environments/${namespace_id}`;
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const output = `${environment}/servers/${server_id}`;
  return [
    { path: '/cloud/games', token: owner },
    { path: `/cloud/games/${game_id}`, token: owner },
    { path: `${group}/profile`, token: owner },
    { path: `${group}/members`, token: owner },
    { path: '/matchmaker/lobbies/list?include_state=true', token: public_token },
    { path: `/v1/lobbies/${lobby_id}`, token: public_token },
    { path: '/matchmaker/players/statistics', token: public_token },
    { path: `${namespace}/analytics/matchmaker/live`, token: owner },
    { path: `${namespace}/logs/lobbies`, token: owner },
    { path: `${environment}/servers`, token: owner },
    { path: `${environment}/servers/${server_id}`, token: owner },
    { path: `${environment}/builds`, token: owner },
    { path: `${environment}/builds/${build_id}`, token: owner },
    {
      path: `${output}/log-lines?stream=std_out`,
      token: owner,
      linesOf: (text) => JSON.parse(text).lines.map((line: { text: string }) => line.text),
    },
    {
      path: `${output}/logs?stream=std_out`,
      token: owner,
      linesOf: (text) => JSON.parse(text).lines.map((line: string) => atob(line)),
    },
  ];
}

interface Writing {
  watchable: WatchableGame;
  urls: string[];
  made: { changes: number };
  isEnough(): boolean;
  /** Only one writer writes the log too. */
  log_writer: { write(count: number): Promise<void> } | undefined;
  chance: Chance;
}

/** Makes random changes at either process until there are enough. */
async function write({ watchable, urls, made, isEnough, log_writer, chance }: Writing): Promise<void> {
  const seats: Seats = { taken: [] };
  const changes = changesOf(watchable, seats, async (method, path, token, body) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${chance.pick(urls)}${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await response.text();
    // A change may be made although its answer was lost, so a second one may be refused.
    if (response.status >= 500 && response.status !== 503) throw new Error(`${method} ${path}: ${text}`);
    if (!response.ok) throw new LostChange(text);
    return JSON.parse(text);
  });
  const names = ['version', 'name', 'member', 'tags', 'state', 'closed', 'seat', 'seat', 'server'] as const;
  while (!isEnough()) {
    const name = chance.oneIn(40) ? 'build' : chance.pick(names);
    const number = chance.below(1_000_000);
    try {
      if (log_writer && chance.oneIn(2)) await log_writer.write(1 + chance.below(chance.oneIn(8) ? 700 : 4));
      else if (name === 'server') await tagServer(watchable, number);
      else await changes[name](number);
      made.changes += 1;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await Bun.sleep(TRIES_AGAIN_AFTER_MS);
    }
  }
}

/** A change that was refused, or whose answer was lost. */
class LostChange extends Error {}

const isUnavailable = (error: unknown): boolean =>
  error instanceof LostChange ||
  (error instanceof Error && 'code' in error && /ECONN|Connection|Socket/.test(`${error.code}`));

interface FaultOptions {
  homes: Home[];
  programs: Program[];
  watchable: WatchableGame;
  made: { changes: number };
  chance: Chance;
}

/** Causes the faults, spread over the changes, and returns their names. */
async function causeFaults({ homes, programs, watchable, made, chance }: FaultOptions): Promise<string[]> {
  const caused: string[] = [];
  const restart = async (place: number, signal: 'SIGTERM' | 'SIGKILL') => {
    await programs[place]?.stop(signal);
    const program = await homes[place]?.start();
    if (program) programs[place] = program;
  };
  const kinds = [
    ['stopped', () => restart(chance.below(2), 'SIGTERM')],
    ['killed', () => restart(chance.below(2), 'SIGKILL')],
    ['both killed', () => Promise.all([restart(0, 'SIGKILL'), restart(1, 'SIGKILL')])],
    ['notifications cut', () => cutListeners(watchable)],
  ] as const;
  for (let turn = 0; turn < FAULTS; turn += 1) {
    const due = (CHANGES * turn) / FAULTS;
    await waitFor(() => made.changes >= due, `${due} changes`, TEST_TIMEOUT_MS);
    // Each kind happens once, then random ones.
    const [name, cause] = kinds[turn] ?? chance.pick(kinds);
    await cause();
    caused.push(name);
  }
  return caused;
}

/** Returns the watchers that have not seen what a fresh GET returns. */
async function findOutdated(histories: WatchHistory[], url: string, lines: number): Promise<string[]> {
  const fresh = new Map<Target, Promise<string>>();
  const read = async ({ path, token }: Target) => {
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return await response.text();
  };
  const wrong: string[] = [];
  for (const { target, text, lines: lines_seen } of histories) {
    if (target.linesOf) {
      if (lines_seen !== lines) wrong.push(`${target.path}: ${lines_seen} of ${lines} lines`);
      continue;
    }
    const now = fresh.get(target) ?? read(target);
    fresh.set(target, now);
    if ((await now) !== text) wrong.push(`${target.path}:\n  ${text}\n  there is\n  ${await now}`);
  }
  return wrong;
}
