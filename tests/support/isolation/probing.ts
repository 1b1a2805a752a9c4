import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { makeGame, type TestGame, uploadBuild, uploadScript } from '../game.ts';
import { makeHome, type Program } from '../program.ts';
import { listBunFiles, packImage } from '../runtimes/containers.ts';
import { serversOf, uploadShell } from '../servers.ts';
import { waitFor } from '../wait.ts';
import { delegateGroups, type Level, USER_ID } from './levels.ts';

const MEMORY_MB = 256;
const DISK_MB = 32;
const RESOURCES = { cpu: 500, memory: MEMORY_MB };

/** `own`: the server did it to something that only it has, such as the files of its container. */
export type Outcome = 'refused' | 'possible' | 'own';
/** What a server could do, by attempt. */
export type Outcomes = Record<string, Outcome>;

interface ProbeOptions {
  /** The socket of the engine that runs the containers. */
  engine_socket?: string;
  /** Whether the limits of the disk are tried as well, which takes most of a minute. */
  with_disk: boolean;
}

/** Runs a service at a level, and the probe as a server of it. Returns what the probe could do. */
export async function probe(level: Level, { engine_socket, with_disk }: ProbeOptions): Promise<Outcomes> {
  await using opened = new AsyncDisposableStack();
  const groups = !level.is_root && level.has_groups ? await delegateGroups(opened) : [];
  const user_id = level.is_root ? undefined : USER_ID;
  const settings = {
    MUSTER_DEMO: 'off',
    MUSTER_ISOLATION: level.isolation,
    MUSTER_SERVER_DISK_MB: String(DISK_MB),
    ...(engine_socket !== undefined && { MUSTER_CONTAINER_ENGINE: `unix://${engine_socket}` }),
  };
  const home = opened.use(await makeHome(settings, { user_id, groups }));
  const program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const machine = opened.use(await answerAtMachine());
  const mark = `muster-intruder-${crypto.randomUUID()}`;
  opened.defer(() => {
    for (const public_folder of PUBLIC_FOLDERS) rmSync(join(public_folder, mark), { force: true });
  });

  const { url, socket } = machine;
  const probed: ProbedServer = {
    program,
    game,
    level,
    data_directory: home.data_directory,
    mark,
    machine: url,
    socket,
  };
  const probing = await startProbe(probed);
  const folder = join(home.data_directory, FOLDERS[level.containers ?? 'process'], probing.id);
  const output = () => readFileSync(join(folder, 'std_out'), 'utf8');
  await waitFor(async () => {
    const { get, linesOf } = serversOf(program, game);
    const { destroyed_at } = await get(probing.id);
    if (destroyed_at !== undefined) {
      const lines = [...(await linesOf(probing.id)), ...(await linesOf(probing.id, 'std_err'))];
      const events = program
        .output()
        .split('\n')
        .filter((line) => line.includes(probing.id));
      throw new Error(`the probe ended: ${[...lines, ...events].join('\n')}`);
    }
    return output().includes('PROBE done');
  }, 'the probe to have tried everything');
  // The service may discard output that it has read.
  const first = output();
  const has_quota = hasQuota(probing.marker);
  const on_disk = with_disk ? await tryDisk(probed) : {};
  await program.stop('SIGTERM');
  const tried = output().length;
  // An engine's output is read by the service.
  if (engine_socket !== undefined) await home.start();
  await waitFor(() => output().length > tried + 1_000, 'the probe to have tried the port');
  const outcomes = { ...readOutcomes(first + output()), ...on_disk };
  return { ...outcomes, ...correct(outcomes, { probed, has_quota, probing }) };
}

/** The folders of servers in the data directory, by what runs them. */
const FOLDERS = { process: 'servers', runc: 'containers', docker: 'engine', podman: 'engine' };
/** Folders of the machine in which every user may write. */
const PUBLIC_FOLDERS = ['/tmp', '/dev/shm'];

interface ProbedServer {
  program: Program;
  game: TestGame;
  level: Level;
  data_directory: string;
  /** The name of files that the probe leaves where it can. */
  mark: string;
  /** The address of a program at an address of the machine; undefined if the machine has none. */
  machine: string | undefined;
  /** The path of a unix socket of a program, which every user may use. */
  socket: string;
}

interface Probing {
  id: string;
  /** A text in the environment of the probe's processes. */
  marker: string;
  build: string;
}

/** Answers at an address of this machine that is not its loopback address, and at a path that every user may use. */
async function answerAtMachine() {
  const folder = await mkdtemp('/tmp/muster-program-');
  const socket = join(folder, 'socket');
  const listening = Bun.listen({ unix: socket, socket: { data() {} } });
  for (const path of [folder, socket]) await chmod(path, 0o777);
  const address = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  const server = address && Bun.serve({ hostname: address, port: 0, fetch: () => new Response('another program') });
  return {
    url: server ? server.url.href : undefined,
    socket,
    [Symbol.asyncDispose]: async () => {
      listening.stop(true);
      await rm(folder, { recursive: true });
      if (server) await server.stop(true);
    },
  };
}

/** Starts the probe beside a server that does nothing. */
async function startProbe({
  program,
  game,
  level,
  data_directory,
  mark,
  machine,
  socket,
}: ProbedServer): Promise<Probing> {
  const servers = serversOf(program, game);
  const network = { ports: { game: { protocol: 'tcp', routing: { host: {} } } } };
  const [other_marker, marker] = [crypto.randomUUID(), crypto.randomUUID()];
  const create = async (build: string, environment: Record<string, string>): Promise<string> => {
    const body = await servers.bodyOf(build, { runtime: { environment }, network, resources: RESOURCES });
    return (await program.api.ok('POST', servers.path, { token: game.cloud_token, body })).server.id;
  };
  const other = await create(await uploadSleep({ program, game, level }), { MARKER: other_marker });
  const { network: assigned } = await servers.waitForStart(other);
  const other_pid = await waitFor(
    () => findMarked(other_marker).find((pid) => readOf(pid, 'comm') === 'sleep\n'),
    'the other server',
  );
  const environment = {
    DATA: data_directory,
    PID_OF_SERVICE: String(program.pid),
    OTHER_ID: other,
    OTHER_PID: String(other_pid),
    OTHER_PORT: String(assigned.ports.game.public_port),
    LIMITED_MB: String(MEMORY_MB),
    OWN_NETWORK_OF_SERVICE: readlinkSync(`/proc/${program.pid}/ns/net`),
    IPC_OF_SERVICE: readlinkSync(`/proc/${program.pid}/ns/ipc`),
    SOCKET_OF_MACHINE: socket,
    ...(machine !== undefined && { ADDRESS_OF_MACHINE: machine }),
    MARK: mark,
    MARKER: marker,
  };
  const build = await uploadProbe({ program, game, level });
  const id = await create(build, environment);
  await servers.waitForStart(id);
  return { id, marker, build };
}

type Target = Pick<ProbedServer, 'program' | 'game' | 'level'>;

const uploadSleep = (target: Target) => uploadTool(target, 'exec sleep 600');

/** Uploads a shell script as the level runs it. In an image it is root, which may do most. */
async function uploadTool({ program, game, level }: Target, script: string): Promise<string> {
  if (!level.containers) return await uploadShell(program.api, game, script);
  const content = await packImage(script, 'tool:1', { user: '0' });
  return await uploadBuild(program.api, game, { image_tag: 'tool:1', path: 'image.tar', content });
}

async function uploadProbe({ program, game, level }: Target): Promise<string> {
  const source = await Bun.file(join(import.meta.dir, 'probe.ts')).text();
  if (!level.containers) return await uploadScript(program.api, game, source);
  const files = [...(await listBunFiles()), { name: 'game/probe.ts', content: source }];
  const command = ['/bin/bun', '/game/probe.ts'];
  const content = await packImage('', 'probe:1', { user: '0', command, files });
  return await uploadBuild(program.api, game, { image_tag: 'probe:1', path: 'image.tar', content });
}

const TOO_MANY_FILES = 130_000;
const FILL = 'fill the disk beyond its limit';
const MANY_FILES = 'have more than 100,000 files';
/** The attempts on the disk. */
export const ON_DISK = [FILL, MANY_FILES];

/** Tries the limits of the disk, each by a server that the next count should end. */
async function tryDisk(probed: ProbedServer): Promise<Outcomes> {
  const { program, game, level } = probed;
  const servers = serversOf(program, game);
  const folder = level.containers ? '/' : '"$HOME"';
  const run = async (script: string): Promise<string> => {
    const body = await servers.bodyOf(await uploadTool(probed, `cd ${folder}; ${script}; echo done; exec sleep 600`), {
      resources: RESOURCES,
    });
    return (await servers.create(body)).body.server.id;
  };
  const hasEnded = async (id: string) => (await servers.get(id)).destroyed_at !== undefined;
  const fill = async () => {
    const id = await run(`head -c ${2 * DISK_MB * 1_024 ** 2} /dev/zero > big`);
    await waitFor(() => hasEnded(id), 'the server with a full disk to be ended');
  };
  const many = await run(`mkdir many; cd many; seq 1 ${TOO_MANY_FILES} | xargs touch`);
  await waitFor(async () => (await hasEnded(many)) || (await servers.linesOf(many)).includes('done'), 'the files');
  // All servers are counted together: after a second full disk, the one with many files was counted.
  await fill();
  if (!(await hasEnded(many))) await fill();
  return { [FILL]: 'refused', [MANY_FILES]: (await hasEnded(many)) ? 'refused' : 'possible' };
}

/** The last outcome of each attempt that was possible, or else the last one. */
function readOutcomes(output: string): Outcomes {
  const outcomes: Outcomes = {};
  for (const line of output.split('\n').slice(0, -1)) {
    if (!line.startsWith('PROBE {')) continue;
    const { attempt, outcome } = JSON.parse(line.slice('PROBE '.length));
    if (outcomes[attempt] === 'possible') continue;
    outcomes[attempt] = outcome.startsWith('refused') ? 'refused' : outcome;
  }
  return outcomes;
}

interface Seen {
  probed: ProbedServer;
  has_quota: boolean;
  probing: Probing;
}

/**
 * Corrects outcomes that only the machine can tell. On a busy machine a server may get less processor time than its quota;
 * what a container did to files may be within its own.
 */
function correct(outcomes: Outcomes, { probed, has_quota, probing }: Seen): Outcomes {
  const { level, mark, data_directory } = probed;
  const processors: Outcomes = has_quota ? { 'take more than its processor time': 'refused' } : {};
  if (!level.containers) return processors;
  const [content = ''] = readdirSync(join(data_directory, 'builds', probing.build));
  const root = join(data_directory, 'builds', probing.build, content, 'rootfs');
  const is_on_machine: Record<string, boolean> = {
    'change its own build': readFileSync(join(root, 'game/probe.ts'), 'utf8') === '',
    'write to /tmp': existsSync(join('/tmp', mark)),
    'write to /dev/shm': existsSync(join('/dev/shm', mark)),
    // Of its image, in which it is root already.
    'become root': false,
  };
  const own = Object.entries(is_on_machine).filter(([name, is_on]) => outcomes[name] === 'possible' && !is_on);
  return {
    ...Object.fromEntries(own.map(([name]): [string, Outcome] => [name, 'own'])),
    ...processors,
  };
}

/** Returns whether the kernel limits the processor time of a server to its resources. */
function hasQuota(marker: string): boolean {
  return findMarked(marker).some((pid) => {
    const group = readOf(pid, 'cgroup')
      .split('\n')
      .map((line) => line.split(':'))
      .find(([, controllers = '']) => controllers.split(',').includes('cpu'))?.[2];
    const read = (name: string) => Number(readFileSync(`/sys/fs/cgroup/cpu${group}/cpu.cfs_${name}_us`, 'utf8'));
    return group !== undefined && read('quota') === (read('period') * RESOURCES.cpu) / 1_000;
  });
}

/** Lists the processes with a text in their environment. */
const findMarked = (marker: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readOf(pid, 'environ').includes(marker));

/** A file of a process, which may end meanwhile. */
function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
