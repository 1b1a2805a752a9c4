import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { findFreePorts } from '../../src/features/servers/placement/free-ports.ts';
import { listProcesses, readStat } from '../../src/platform/system/processes.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame, type TestGame, uploadBuild } from '../support/game.ts';
import { countDescriptors, countZombies, groupsOf, mountsIn } from '../support/leftovers.ts';
import { findProcessesOf, findServerProcesses } from '../support/processes.ts';
import type { Program } from '../support/program.ts';
import { packImage, WITHOUT_CONTAINERS } from '../support/runtimes/containers.ts';
import { type ExternalHome, openExternalHome } from '../support/runtimes/external-home.ts';
import { serversOf, uploadShell } from '../support/servers.ts';
import { waitFor } from '../support/wait.ts';

/** A way to run servers. */
interface Kind {
  name: string;
  servers: number;
  concurrency: number;
  /** The folder of servers in the data directory. */
  folder: string;
  upload(program: Program, game: TestGame, script: string): Promise<string>;
}

const PROCESSES: Kind = {
  name: 'servers',
  servers: IS_FULL_LENGTH ? 1_000 : 60,
  concurrency: 20,
  folder: 'servers',
  upload: ({ api }, game, script) => uploadShell(api, game, script),
};
const CONTAINERS: Kind = {
  name: 'servers in containers',
  servers: 200,
  concurrency: 20,
  folder: 'containers',
  upload: async ({ api }, game, script) =>
    await uploadBuild(api, game, { image_tag: 'a:1', path: 'image.tar', content: await packImage(script, 'a:1') }),
};

/** Other programs of the machine may have some at any time. */
const ZOMBIES_OF_OTHERS_MAX = 8;

/** How servers end: by themselves, badly, on request, and with a process that left their session. */
const SCRIPTS = ['exit 0', 'exit 3', 'exec sleep 600', '(setsid sleep 600 &); exec sleep 600'];

if (WITHOUT_CONTAINERS !== undefined) console.log(`Not tried, because ${WITHOUT_CONTAINERS}: churn of containers.`);

let external: ExternalHome;
beforeAll(async () => {
  // Ports rest for a minute after their servers, so the servers of a run at full length need more than a test claims.
  external = await openExternalHome(IS_FULL_LENGTH ? { MUSTER_SERVER_PORTS: '27000-30999' } : {});
}, 300_000);
afterAll(() => external[Symbol.asyncDispose](), 300_000);

/** Returns a condition: each of the ports has been free once. Other programs may take them at any time. */
function portsAreFree(ports: number[]): () => Promise<boolean> {
  const left = new Set(ports);
  return async () => {
    for (const port of left) {
      const free = await findFreePorts({ min: port, max: port }, new Set(), 1);
      if (free) left.delete(port);
    }
    return left.size === 0;
  };
}

const childrenOf = (parent: number) => listProcesses().filter((pid) => readStat(pid)?.parent === parent);

/** Starts and ends servers, kills the service among them, and looks for what is left. */
async function churn({ servers, concurrency, folder, upload }: Kind): Promise<void> {
  let program: Program = await external.home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const builds = await Promise.all(SCRIPTS.map((script) => upload(program, game, script)));
  const all = new Set<string>();
  const [{ ended_before } = { ended_before: 0 }] = await external.database.queries.execute<{ ended_before: number }>(
    sql`select count(*)::int as ended_before from servers`,
  );

  /** Starts servers of these builds, and waits until each runs or has ended. */
  async function startSome(of_builds: string[]): Promise<string[]> {
    const { bodyOf, create, waitForStartOrEnd } = serversOf(program, game);
    const ids = await Promise.all(
      Array.from({ length: concurrency }, async (_, index) => {
        const build = of_builds[index % of_builds.length] ?? '';
        const body = await bodyOf(build, { network: { ports: { game: { protocol: 'udp' } } } });
        return (await create(body)).body.server.id as string;
      }),
    );
    for (const id of ids) all.add(id);
    await Promise.all(ids.map(waitForStartOrEnd));
    return ids;
  }

  async function end(ids: string[]): Promise<void> {
    const { destroy } = serversOf(program, game);
    await Promise.all(ids.map((id) => destroy(id, '?override_kill_timeout=0')));
    await waitForAllEnds();
  }

  /** Returns the ports that the servers have had. */
  async function selectPorts(): Promise<number[]> {
    const rows = await external.database.queries.execute<{ port: number }>(sql`
      select distinct (port ->> 'public_port')::int as port from servers
      cross join jsonb_each(ports) as of_server (label, port) where port ? 'public_port' order by port limit 10000`);
    return rows.map(({ port }) => port);
  }

  const runSome = async () => end(await startSome(builds));
  const waitForAllEnds = () =>
    waitFor(async () => {
      const [row] = await external.database.queries.execute<{ count: number }>(
        sql`select count(*)::int as count from servers where ended_at is null`,
      );
      return row?.count === 0;
    }, 'all servers to end');

  // The first servers open descriptors that stay open.
  await runSome();
  const descriptors_before = countDescriptors(program.pid);
  const zombies_before = countZombies();
  while (all.size < servers / 2) await runSome();
  const lasting = await startSome(builds.slice(2));
  await program.stop('SIGKILL');
  program = await external.home.start();
  const { get } = serversOf(program, game);
  const adopted = await Promise.all(lasting.map(get));
  expect(adopted.filter((server) => server.destroyed_at !== undefined)).toEqual([]);
  expect(lasting.filter((id) => findProcessesOf(id).length === 0)).toEqual([]);
  await end(lasting);
  while (all.size < servers) await runSome();

  await waitFor(() => childrenOf(program.pid).length === 0, 'no child of the service to be left');
  await waitFor(() => countDescriptors(program.pid) <= descriptors_before + 8, 'no descriptor to be left');
  expect(mountsIn(external.home.data_directory, program.pid)).toEqual([]);
  // The files of a server are removed after its end is recorded.
  await waitFor(() => readdirSync(join(external.home.data_directory, folder)).length === 0, 'no folder to be left');
  await waitFor(() => groupsOf(all).length === 0, 'no control group to be left');
  await waitFor(() => countZombies() <= zombies_before + ZOMBIES_OF_OTHERS_MAX, 'no zombie to be left');
  expect([...all].flatMap(findServerProcesses)).toEqual([]);
  const [row] = await external.database.queries.execute<{ held: number; ended: number }>(sql`
    select (select count(*)::int from server_ports where release_ts is null) as held,
      (select count(*)::int from servers where ended_at is not null) as ended`);
  expect(row).toMatchObject({ held: 0, ended: all.size + ended_before });
  await waitFor(portsAreFree(await selectPorts()), 'their ports to be free');
  await program.stop('SIGINT');
}

describe.each([PROCESSES, CONTAINERS])('churn:', (kind) => {
  test.skipIf(kind === CONTAINERS && WITHOUT_CONTAINERS !== undefined)(
    `${kind.servers} ${kind.name} that start and end leave nothing, also with a kill of the service among them`,
    async () => {
      await churn(kind);
    },
    600_000,
  );
});
