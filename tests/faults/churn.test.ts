import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { readStat } from '../../src/platform/processes.ts';
import { openExternalDatabase } from '../support/database.ts';
import { makeGame } from '../support/game.ts';
import { IS_LONG } from '../support/length.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { waitFor } from '../support/wait.ts';

const SERVERS = IS_LONG ? 1_000 : 60;
const AT_ONCE = 20;

/** How servers end: by themselves, badly, on request, and with a process that left their session. */
const SCRIPTS = ['exit 0', 'exit 3', 'exec sleep 600', '(setsid sleep 600 &); exec sleep 600'];

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
/** Returns the mounts of a process inside of a folder. */
const mountsIn = (folder: string, pid: number) =>
  readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));

test(`${SERVERS} servers that start and end leave nothing, also with a kill of the service among them`, async () => {
  let program: Program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const builds = await Promise.all(SCRIPTS.map((script) => uploadShell(program.api, game, script)));
  const all = new Set<string>();

  /** Starts servers of these builds, and waits until each runs or has ended. */
  async function startSome(of_builds: string[]): Promise<string[]> {
    const { bodyOf, create, settled } = serversOf(program, game);
    const ids = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
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

  // The first ones open what stays open.
  await runSome();
  const descriptors_before = descriptorsOf(program.pid);
  while (all.size < SERVERS / 2) await runSome();
  const lasting = await startSome(builds.slice(2));
  await program.stop('SIGKILL');
  program = await home.start();
  const { get } = serversOf(program, game);
  const adopted = await Promise.all(lasting.map(get));
  expect(adopted.filter((server) => server.destroyed_at !== undefined)).toEqual([]);
  await end(lasting);
  while (all.size < SERVERS) await runSome();

  await waitFor(() => childrenOf(program.pid).length === 0, 'no child of the service to be left');
  await waitFor(() => descriptorsOf(program.pid) <= descriptors_before + 8, 'no descriptor to be left');
  expect(mountsIn(home.data_directory, program.pid)).toEqual([]);
  // The files of a server are removed after its end is recorded.
  await waitFor(() => namesIn(join(home.data_directory, 'servers')).length === 0, 'no folder to be left');
  await waitFor(() => groupsOf(all).length === 0, 'no control group to be left');
  const [row] = await database.queries.execute<{ held: number; ended: number }>(sql`
    select (select count(*)::int from server_ports where release_ts is null) as held,
      (select count(*)::int from servers where ended_at is not null) as ended`);
  expect(row).toMatchObject({ held: 0, ended: all.size });
}, 300_000);
