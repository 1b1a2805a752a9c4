import { ServiceError } from '../../../../platform/errors.ts';
import { CPU_PERIOD_US, cpuQuotaOf } from '../../../../platform/system/cgroups.ts';
import { MIB } from '../../../../platform/units.ts';
import type { ServerPort } from '../../tables.ts';
import { type ImageProcess, programOfImage } from '../container/image.ts';
import { ENGINE_SECCOMP_PROFILE } from '../container/seccomp-profile.ts';
import { PROCESSES_MAX, type StartOrder } from '../runtime.ts';

const OPEN_FILES_MAX = 65_536;
/** Podman limits itself, and so its containers, to this many processes of a user. */
const USER_PROCESSES_MAX = 32_768;
/**
 * The engine keeps this much of a server's output until Muster has copied it. Podman has one file, which it empties when
 * it is full. Docker's driver `local` is faster, but repeats lines when it begins a new file.
 */
const DOCKER_LOG = { Type: 'json-file', Config: { 'max-size': '32m', 'max-file': '3' } };
const PODMAN_LOG = { Type: 'json-file', Config: { 'max-size': '96m' } };
/** An engine starts a program for each port that it publishes. */
const PORTS_OF_RANGE_MAX = 100;

/** The labels by which the Muster of a machine finds its own containers, images and networks. */
export const LABELS = {
  machine: 'muster.machine',
  server: 'muster.server',
  build: 'muster.build',
  directory: 'muster.directory',
} as const;

export interface EngineContainerPlan {
  order: StartOrder;
  image: ImageProcess;
  image_id: string;
  network: string;
  node_id: string;
  has_read_only_root: boolean;
  has_swap_limit: boolean;
  is_podman: boolean;
  /** The file of the filter of system calls. Podman takes its path, Docker its content. */
  seccomp_file: string;
  /** The hard limit of this machine, which an engine may not be allowed to exceed. */
  open_files_max: number;
  /** The hard limit of processes of a user on this machine. */
  user_processes_max: number;
}

/** The name of a server's container. */
export const nameOf = (server_id: string): string => `muster-${server_id}`;

/**
 * Returns the body of the call that creates a container. Of the image's own configuration it uses only the program. Throws
 * a ServiceError for a range of ports that is too long.
 */
export function makeEngineContainer(plan: EngineContainerPlan) {
  const { order, image, node_id } = plan;
  const { command, environment, directory } = programOfImage(order, image);
  const ports = Object.values(order.ports).flatMap(publishedPortsOf);
  return {
    Image: plan.image_id,
    Entrypoint: command,
    Cmd: [],
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    User: `${image.user?.uid ?? 0}:${image.user?.gid ?? 0}`,
    WorkingDir: directory,
    Hostname: 'server',
    Labels: { [LABELS.machine]: node_id, [LABELS.server]: order.server_id },
    ExposedPorts: Object.fromEntries(ports.map(({ inside }) => [inside, {}])),
    HostConfig: hostConfigOf(plan, ports),
  };
}

function hostConfigOf(plan: EngineContainerPlan, ports: PublishedPort[]) {
  const { cpu, memory } = plan.order.resources;
  const user_processes_max = Math.min(plan.user_processes_max, USER_PROCESSES_MAX);
  const files_max = Math.min(plan.open_files_max, OPEN_FILES_MAX);
  // Files in /tmp and /dev/shm count as memory of the server.
  const half_memory = Math.max(1, Math.floor(memory / 2));
  return {
    NetworkMode: plan.network,
    PortBindings: Object.fromEntries(ports.map(({ inside, outside }) => [inside, [{ HostPort: outside }]])),
    // Without an init a program that handles no signals ignores SIGTERM, and its exit status does not show a signal.
    Init: true,
    Privileged: false,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges', `seccomp=${plan.is_podman ? plan.seccomp_file : ENGINE_SECCOMP_PROFILE}`],
    ReadonlyRootfs: plan.has_read_only_root,
    Memory: memory * MIB,
    // With swap a server would take twice its memory.
    ...(plan.has_swap_limit && { MemorySwap: memory * MIB }),
    CpuPeriod: CPU_PERIOD_US,
    CpuQuota: cpuQuotaOf(cpu),
    PidsLimit: PROCESSES_MAX,
    Ulimits: [
      { Name: 'nofile', Soft: files_max, Hard: files_max },
      // The kernel counts the processes of a user in all containers together, so `PidsLimit` limits a server alone.
      { Name: 'nproc', Soft: user_processes_max, Hard: user_processes_max },
      { Name: 'core', Soft: 0, Hard: 0 },
    ],
    Tmpfs: { '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${half_memory}m` },
    ShmSize: half_memory * MIB,
    // A program that is not root may listen on port 80, since its network is its own.
    Sysctls: { 'net.ipv4.ip_unprivileged_port_start': '0' },
    GroupAdd: (plan.image.user?.additionalGids ?? []).map(String),
    RestartPolicy: { Name: 'no' },
    LogConfig: plan.is_podman ? PODMAN_LOG : DOCKER_LOG,
  };
}

/** A port of a container as the engine names it, and the port of the machine that leads there. */
interface PublishedPort {
  inside: string;
  outside: string;
}

function publishedPortsOf({ protocol, internal_port, public_port, port_range }: ServerPort): PublishedPort[] {
  const transport = protocol === 'udp' ? 'udp' : 'tcp';
  if (port_range) {
    const { min, max } = port_range;
    const count = max - min + 1;
    if (count > PORTS_OF_RANGE_MAX) {
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
        error: `the range ${min}-${max} is too long: containers of this machine have at most ${PORTS_OF_RANGE_MAX} ports`,
      });
    }
    return Array.from({ length: count }, (_, index) => String(min + index)).map((port) => ({
      inside: `${port}/${transport}`,
      outside: port,
    }));
  }
  if (public_port === undefined) return [];
  return [{ inside: `${internal_port ?? public_port}/${transport}`, outside: String(public_port) }];
}
