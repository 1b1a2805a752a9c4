import { chown, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openCgroups, removeGroup } from '../../../src/platform/cgroups.ts';
import { makeGame, uploadScript } from '../game.ts';
import { makeHome, type Program } from '../program.ts';
import { IS_ROOT } from '../runtimes.ts';
import { serversOf } from '../servers.ts';
import { waitFor } from '../wait.ts';

/** The user of services that are not root. */
const USER_ID = 64_322;
const MEMORY_MB = 256;

/** A way to run the service. */
export interface Level {
  name: string;
  isolation: 'on' | 'off';
  is_root: boolean;
  has_groups: boolean;
}

export const LEVELS: Level[] = [
  { name: 'root', isolation: 'on', is_root: true, has_groups: true },
  { name: 'user with cgroups', isolation: 'on', is_root: false, has_groups: true },
  { name: 'user', isolation: 'on', is_root: false, has_groups: false },
  { name: 'off, root', isolation: 'off', is_root: true, has_groups: false },
  { name: 'off, user', isolation: 'off', is_root: false, has_groups: false },
];

/** Returns whether this machine can try a level: only root can run the service as others. */
export const canTry = (): boolean => IS_ROOT && openCgroups().controllers.length === 3;

/** What a server could do, by attempt. */
export type Outcomes = Record<string, string>;

/** Runs a service, and the probe as a server of it. Returns what the probe reported. */
export async function probe({ isolation, is_root, has_groups }: Level): Promise<Outcomes> {
  await using opened = new AsyncDisposableStack();
  const groups = !is_root && has_groups ? await delegateGroups(opened) : [];
  const user_id = is_root ? undefined : USER_ID;
  const settings = { MUSTER_DEMO: 'off', MUSTER_ISOLATION: isolation };
  const home = opened.use(await makeHome(settings, { user_id, groups }));
  const program = await home.start();
  const probing = await startProbe(program, home.data_directory);
  const output = async () => await readFile(join(home.data_directory, 'servers', probing, 'std_out'), 'utf8');
  await waitFor(async () => (await output()).includes('PROBE done'), 'the probe to have tried everything', 60_000);
  await program.stop('SIGTERM');
  const tried = (await output()).length;
  await waitFor(async () => (await output()).length > tried + 1_000, 'the probe to have tried the port');
  return readOutcomes(await output());
}

/** The last outcome of each attempt that was possible, or else the last one. */
function readOutcomes(output: string): Outcomes {
  const outcomes: Outcomes = {};
  for (const line of output.split('\n').slice(0, -1)) {
    if (!line.startsWith('PROBE {')) continue;
    const { attempt, outcome } = JSON.parse(line.slice('PROBE '.length));
    if (outcomes[attempt] !== 'possible') outcomes[attempt] = outcome;
  }
  return outcomes;
}

/** Starts the probe beside a server that does nothing. Returns its id. */
async function startProbe(program: Program, data_directory: string): Promise<string> {
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const network = { ports: { game: { protocol: 'tcp', routing: { host: {} } } } };
  const resources = { cpu: 500, memory: MEMORY_MB };
  const other = await servers.run('exec sleep 600', { network, resources });
  const { network: assigned } = await servers.started(other);
  const first = await waitFor(() => findServer(other), 'the other server');
  const environment = {
    DATA: data_directory,
    PID_OF_SERVICE: String(program.pid),
    OTHER_ID: other,
    OTHER_PID: String(first),
    OTHER_PORT: String(assigned.ports.game.public_port),
    LIMITED_MB: String(MEMORY_MB),
  };
  const source = await Bun.file(join(import.meta.dir, 'probe.ts')).text();
  const build = await uploadScript(program.api, game, source);
  const body = await servers.bodyOf(build, { runtime: { environment }, network, resources });
  const { id } = (await program.api.ok('POST', servers.path, { token: game.cloud_token, body })).server;
  await servers.started(id);
  return id;
}

/** Returns the process of the other server's program, which is not its shim. */
function findServer(server_id: string): number | undefined {
  const { stdout } = Bun.spawnSync(['/bin/sh', '-c', `grep -l '${server_id}' /proc/[0-9]*/environ 2>/dev/null`]);
  for (const path of stdout.toString().split('\n').filter(Boolean)) {
    const pid = path.split('/')[2] ?? '';
    const { stdout: command } = Bun.spawnSync(['cat', `/proc/${pid}/comm`]);
    if (command.toString().trim() === 'sleep') return Number(pid);
  }
  return undefined;
}

/** Makes control groups that belong to the user of the service, as a delegation does. Returns their directories. */
async function delegateGroups(opened: AsyncDisposableStack): Promise<string[]> {
  const cgroups = openCgroups();
  const id = crypto.randomUUID();
  cgroups.create(id, { memory_bytes: 4 * 1_024 ** 3, cpu: 2_000, processes_max: 4_096 });
  const directories = cgroups.directoriesOf(id);
  opened.defer(() => removeGroup(directories));
  for (const directory of directories) {
    for (const path of [directory, join(directory, 'cgroup.procs')]) await chown(path, USER_ID, USER_ID);
  }
  return directories;
}
