import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { findSeatInDemo, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom } from '../support/lobbies/room.ts';
import { COMMAND, type Home, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

/** The moments of a first start, recognized by the files in its data directory. */
const MOMENTS = [
  {
    name: 'unpacks PostgreSQL',
    has: ({ entries }: Files) => entries('postgres').some((name) => /unfinished$/.test(name)),
  },
  { name: 'creates the cluster', has: ({ entries }: Files) => entries('postgres/cluster.unfinished').includes('base') },
  { name: 'starts PostgreSQL', has: ({ entries }: Files) => entries('postgres').includes('cluster') },
  { name: 'creates the tables', has: ({ text }: Files) => /^ready/m.test(text('postgres/cluster/postmaster.pid')) },
  {
    name: 'uploads the demo',
    has: ({ entries }: Files) => entries('objects').some((name) => !name.startsWith('storage-')),
  },
  { name: 'is about to listen', has: ({ entries }: Files) => entries('.').includes('administrator-token') },
];

interface Files {
  entries(folder: string): string[];
  text(file: string): string;
}

test('first start: killed at any moment, it is completed by the next start', async () => {
  await using home = await makeHome();
  // A kill that misses its moment happens at a later one.
  for (const moment of MOMENTS.keys())
    await killWhen(home, (files) => MOMENTS.slice(moment).some(({ has }) => has(files)));

  const { url, api, administrator_token: token } = await home.start();
  const { games } = await api.ok('GET', '/cloud/games', { token });
  expect(games.map(({ name_id }: { name_id: string }) => name_id)).toEqual(['demo']);
  const { game } = await api.ok('GET', `/cloud/games/${games[0].game_id}`, { token });
  const [room, ...others] = game.versions.filter(
    ({ display_name }: { display_name: string }) => display_name === 'Demo room',
  );
  expect(others).toEqual([]);
  for (const { version_id } of game.namespaces) expect(version_id).toBe(room.version_id);

  const [one, other] = [await enterRoom(await findSeatInDemo(url)), await enterRoom(await findSeatInDemo(url))];
  expect(other.lobby_id).toBe(one.lobby_id);
  await seeEachOther(one, other);
}, 300_000);

test('first start: ctrl-C while the cluster is created: exit code 0, one line', async () => {
  await using home = await makeHome();
  const files = readFilesIn(home.data_directory);
  // A terminal sends the signal to all processes of the group.
  const launched = home.launch({
    command: [Bun.which('setsid') ?? 'setsid', ...COMMAND],
    settings: { MUSTER_LOG: 'info' },
  });
  await waitFor(
    () => files.entries('postgres/cluster.unfinished').includes('pg_hba.conf'),
    'the cluster to be created',
  );
  process.kill(-launched.pid, 'SIGINT');
  expect(await launched.exited).toBe(0);
  expect(launched.output().trim().split('\n')).toEqual([expect.stringContaining('service_stopping')]);
  const { api, administrator_token: token } = await home.start();
  expect((await api.ok('GET', '/cloud/games', { token })).games).toHaveLength(1);
}, 300_000);

test('first start: answers while another process migrates the database, so that nothing takes it for dead', async () => {
  await using external = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: external.url, MUSTER_DEMO: 'off' });
  await using database = openDatabase({ url: external.url }, 1);
  const statusOf = async (path: string) => (await fetch(`${home.url}${path}`).catch(() => undefined))?.status;
  const { launched, statuses } = await database.exclusively(LOCKS.migration, async () => {
    const program = home.launch();
    await waitFor(async () => (await statusOf('/health/live')) === 200, 'an answer');
    return { launched: program, statuses: [await statusOf('/health/ready'), await statusOf('/cloud/games')] };
  });
  expect(statuses).toEqual([503, 503]);
  await waitFor(async () => (await statusOf('/health/ready')) === 200, 'the service to be ready');
  expect(await launched.stop('SIGTERM')).toBe(0);
}, 300_000);

test('first start: is done without the demo if the disk has too little room for it', async () => {
  await using external = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: external.url, MUSTER_DISK_RESERVE_MB: '1048576' });
  const { output, api, administrator_token: token } = await home.start();
  expect(output()).toContain('demo_not_created');
  expect(output()).not.toContain('/demo');
  expect((await api.ok('GET', '/cloud/games', { token })).games).toHaveLength(1);
}, 300_000);

/** Starts the program and kills it at this moment. */
async function killWhen(home: Home, has: (files: Files) => boolean): Promise<void> {
  const files = readFilesIn(home.data_directory);
  const launched = home.launch();
  const deadline = performance.now() + 30_000;
  while (!has(files)) {
    if (performance.now() > deadline) throw new Error(`the moment never came: ${launched.output()}`);
    await Bun.sleep(1);
  }
  await launched.stop('SIGKILL');
}

function readFilesIn(directory: string): Files {
  const pathOf = (path: string) => join(directory, path);
  return {
    entries: (folder) => (existsSync(pathOf(folder)) ? readdirSync(pathOf(folder)) : []),
    text: (file) => (existsSync(pathOf(file)) ? readFileSync(pathOf(file), 'utf8') : ''),
  };
}
