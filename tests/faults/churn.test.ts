import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { readStat } from '../../src/platform/processes.ts';
import { packImage, WITHOUT_CONTAINERS } from '../support/containers.ts';
import { openExternalDatabase } from '../support/database.ts';
import { makeGame, type TestGame, uploadBuild } from '../support/game.ts';
import { IS_LONG } from '../support/length.ts';
import { findProcessesOf } from '../support/processes.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { waitFor } from '../support/wait.ts';

/** A way to run servers. */
interface Kind {
  name: string;
  servers: number;
  at_once: number;
  /** The folder of servers in the data directory. */
  folder: string;
  upload(program: Program, game: TestGame, script: string): Promise<string>;
}

const PROCESSES: Kind = {
  name: 'servers',
  servers: IS_LONG ? 1_000 : 60,
  at_once: 20,
  folder: 'servers',
  upload: ({ api }, game, script) => uploadShell(api, game, script),
};
const CONTAINERS: Kind = {
  name: 'servers in containers',
  servers: 96,
  at_once: 8,
  folder: 'containers',
  upload: async ({ api }, game, script) =>
    await uploadBuild(api, game, { image_tag: 'a:1', path: 'image.tar', content: await packImage(script, 'a:1') }),
};

/** How servers end: by themselves, badly, on request, and with a process that left their session. */
const SCRIPTS = ['exit 0', 'exit 3', 'exec sleep 600', '(setsid sleep 600 &); exec sleep 600'];

if (WITHOUT_CONTAINERS !== undefined) console.log(`Not tried, because ${WITHOUT_CONTAINERS}: churn of containers.`);

const opened = new AsyncDisposableStack();
let database: Database;
let home: Home;
beforeAll(async () => {
  const { url } = opened.use(await openExternalDatabase());
  home = opened.use(await makeHome({ DATABASE_URL: url, MUSTER_DEMO: 'off', MUSTER_LIMITS: 'off' }));
  database = opened.use(openDatabase({ url }, 1));
}, 90_000);
afterAll(() => opened.disposeAsync(), 90_000);

const namesIn = (folder: string) => readdirSync(folder, { withFileTypes: true });
/** Returns the control groups of servers, in all hierarchies. */
function groupsOf(server_ids: ReadonlySet<string>, folder = '/sys/fs/cgroup'): string[] {
  const folders = namesIn(folder).filter((entry) => entry.isDirectory());
  return folders.flatMap(({ name }) => [
    ...([...server_ids].some((id) => name.includes(id)) ? [join(folder, name)] : []),
    ...groupsOf(server_ids, join(folder, name)),
  ]);
}
const childrenOf = (pid: number) =>
  namesIn('/proc').flatMap(({ name }) => (readStat(Number(name))?.parent === pid ? [Number(name)] : []));
const descriptorsOf = (pid: number) => namesIn(`/proc/${pid}/fd`).length;
/** Returns the mounts of a process in a folder. */
const mountsIn = (folder: string, pid: number) =>
  readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));

/** Starts and ends servers, kills the service among them, and looks for what is left. */
async function churn({ servers, at_once, folder, upload }: Kind): Promise<void> {
  let program: Program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const builds = await Promise.all(SCRIPTS.map((script) => upload(program, game, script)));
  const all = new Set<string>();
  const [{ ended_before } = { ended_before: 0 }] = await database.queries.execute<{ ended_before: number }>(
    sql`select count(*)::int as ended_before from servers`,
  );

  /** Starts servers of these builds, and waits until each runs or has ended. */
  async function startSome(of_builds: string[]): Promise<string[]> {
    const { bodyOf, create, settled } = serversOf(program, game);
    const ids = await Promise.all(
      Array.from({ length: at_once }, async (_, index) => {
        const build = of_builds[index % of_builds.length] ?? '';
        const body = await bodyOf(build, { network: { ports: { game: { protocol: 'udp' } } } });
        return (await create(body)).body.server.id as string;
      }),
    );
    for (const id of ids) all.add(id);
    await Promise.all(ids.map(settled));
    return ids;
  }

  async function end(ids: string[]): Promise<void> {
    const { destroy } = serversOf(program, game);
    await Promise.all(ids.map((id) => destroy(id, '?override_kill_timeout=0')));
    await haveEnded();
  }
  const runSome = async () => end(await startSome(builds));
  const haveEnded = () =>
    waitFor(async () => {
      const [row] = await database.queries.execute<{ count: number }>(
        sql`select count(*)::int as count from servers where ended_at is null`,
      );
      return row?.count === 0;
    }, 'all servers to end');

  // The first servers open descriptors that stay open.
  await runSome();
  const descriptors_before = descriptorsOf(program.pid);
  while (all.size < servers / 2) await runSome();
  const lasting = await startSome(builds.slice(2));
  await program.stop('SIGKILL');
  program = await home.start();
  const { get } = serversOf(program, game);
  const adopted = await Promise.all(lasting.map(get));
  expect(adopted.filter((server) => server.destroyed_at !== undefined)).toEqual([]);
  expect(lasting.filter((id) => findProcessesOf(id).length === 0)).toEqual([]);
  await end(lasting);
  while (all.size < servers) await runSome();

  await waitFor(() => childrenOf(program.pid).length === 0, 'no child of the service to be left');
  await waitFor(() => descriptorsOf(program.pid) <= descriptors_before + 8, 'no descriptor to be left');
  expect(mountsIn(home.data_directory, program.pid)).toEqual([]);
  // The files of a server are removed after its end is recorded.
  await waitFor(() => namesIn(join(home.data_directory, folder)).length === 0, 'no folder to be left');
  await waitFor(() => groupsOf(all).length === 0, 'no control group to be left');
  expect([...all].flatMap(findProcessesOf)).toEqual([]);
  const [row] = await database.queries.execute<{ held: number; ended: number }>(sql`
    select (select count(*)::int from server_ports where release_ts is null) as held,
      (select count(*)::int from servers where ended_at is not null) as ended`);
  expect(row).toMatchObject({ held: 0, ended: all.size + ended_before });
  await program.stop('SIGINT');
}

describe.each([PROCESSES, ...(WITHOUT_CONTAINERS === undefined ? [CONTAINERS] : [])])('churn:', (kind) => {
  test(`${kind.servers} ${kind.name} that start and end leave nothing, also with a kill of the service among them`, async () => {
    await churn(kind);
  }, 300_000);
});
