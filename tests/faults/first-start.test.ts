import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createApi } from '../support/api.ts';
import { seeEachOther } from '../support/players.ts';
import { type Home, makeHome } from '../support/program.ts';
import { enterRoom } from '../support/room.ts';

/** How far a first start has come, by what lies in its data directory. */
const MOMENTS = [
  {
    name: 'unpacks PostgreSQL',
    has: ({ entries }: Sight) => entries('postgres').some((name) => /unfinished$/.test(name)),
  },
  { name: 'makes the cluster', has: ({ entries }: Sight) => entries('postgres/cluster.unfinished').includes('base') },
  { name: 'starts PostgreSQL', has: ({ entries }: Sight) => entries('postgres').includes('cluster') },
  { name: 'makes the tables', has: ({ text }: Sight) => /^ready/m.test(text('postgres/cluster/postmaster.pid')) },
  {
    name: 'uploads the demo',
    has: ({ entries }: Sight) => entries('objects').some((name) => !name.startsWith('storage-')),
  },
  { name: 'is about to listen', has: ({ entries }: Sight) => entries('.').includes('administrator-token') },
];

interface Sight {
  entries(folder: string): string[];
  text(file: string): string;
}

test('a first start that is killed at any moment is completed by the next', async () => {
  await using home = await makeHome();
  // Who looks too late, kills it at a later moment.
  for (const moment of MOMENTS.keys())
    await killWhen(home, (sight) => MOMENTS.slice(moment).some(({ has }) => has(sight)));

  const { url, api, administrator_token: token } = await home.start();
  const { games } = await api.ok('GET', '/cloud/games', { token });
  expect(games.map(({ name_id }: { name_id: string }) => name_id)).toEqual(['demo']);
  const { game } = await api.ok('GET', `/cloud/games/${games[0].game_id}`, { token });
  const [room, ...others] = game.versions.filter(
    ({ display_name }: { display_name: string }) => display_name === 'Demo room',
  );
  expect(others).toEqual([]);
  for (const { version_id } of game.namespaces) expect(version_id).toBe(room.version_id);

  const [one, other] = [await enterDemo(url), await enterDemo(url)];
  expect(other.lobby_id).toBe(one.lobby_id);
  await seeEachOther(one, other);
}, 90_000);

/** Starts the program and kills it as soon as it has come that far. */
async function killWhen(home: Home, has: (sight: Sight) => boolean): Promise<void> {
  const sight = lookInto(home.data_directory);
  const launched = home.launch();
  const deadline = performance.now() + 30_000;
  while (!has(sight)) {
    if (performance.now() > deadline) throw new Error(`it never came so far: ${launched.output()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await launched.stop('SIGKILL');
}

function lookInto(directory: string): Sight {
  const at = (path: string) => join(directory, path);
  return {
    entries: (folder) => (existsSync(at(folder)) ? readdirSync(at(folder)) : []),
    text: (file) => (existsSync(at(file)) ? readFileSync(at(file), 'utf8') : ''),
  };
}

async function enterDemo(url: string) {
  const page = await (await fetch(`${url}/demo`)).text();
  const token = /const token = '([^']+)'/.exec(page)?.[1];
  const body = { game_modes: ['default'] };
  return await enterRoom(await createApi(url).ok('POST', '/matchmaker/lobbies/find', { token, body }));
}
