import { CPU_PERIOD_US, cpuQuotaOf } from '../../../../platform/system/cgroups.ts';
import { MIB } from '../../../../platform/units.ts';
import { PROCESSES_MAX, type ServerResources, type StartOrder } from '../runtime.ts';
import { type ImageProcess, programOfImage } from './image.ts';
import { SECCOMP_PROFILE } from './seccomp-profile.ts';

/** The version of the OCI runtime specification. */
const OCI_VERSION = '1.0.2';
const OPEN_FILES_MAX = 65_536;
/** The path in the container of its first process, which starts the program and waits for it. */
const INIT = '/dev/init';

export interface ContainerPlan {
  order: StartOrder;
  image: ImageProcess;
  /** The path of the init program on this machine: a static one, because images may have no libraries. */
  init: string;
  /** The folder of the server, which has its `netns`, `rootfs`, `resolv.conf` and `hosts`. */
  folder: string;
  /** The path of its control group below the mounted hierarchies. */
  cgroup: string;
  has_read_only_root: boolean;
  has_swap_limit: boolean;
  /** The hard limit of open files of this process, which only a privileged process may exceed. */
  open_files_max: number;
}

/** Returns the configuration of a container, as in the OCI runtime specification. */
export function makeContainerConfig(plan: ContainerPlan) {
  const { order, folder, cgroup, has_read_only_root, has_swap_limit } = plan;
  return {
    ociVersion: OCI_VERSION,
    hostname: 'server',
    root: { path: 'rootfs', readonly: has_read_only_root },
    process: processOf(plan),
    mounts: mountsOf(plan),
    linux: {
      namespaces: [
        { type: 'pid' },
        { type: 'network', path: `${folder}/netns` },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'mount' },
        { type: 'cgroup' },
      ],
      // A program that is not root may listen on port 80, since its network is its own.
      sysctl: { 'net.ipv4.ip_unprivileged_port_start': '0' },
      cgroupsPath: cgroup,
      resources: resourcesOf(order.resources, { has_swap_limit }),
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READ_ONLY_PATHS,
      seccomp: SECCOMP_PROFILE,
    },
  };
}

function processOf({ order, image, open_files_max }: ContainerPlan) {
  const { command, environment, directory } = programOfImage(order, image);
  const files_max = Math.min(open_files_max, OPEN_FILES_MAX);
  return {
    terminal: false,
    user: { uid: 0, gid: 0, ...image.user },
    args: [INIT, '--', ...command],
    env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    cwd: directory,
    capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
    rlimits: [
      { type: 'RLIMIT_NOFILE', soft: files_max, hard: files_max },
      { type: 'RLIMIT_CORE', soft: 0, hard: 0 },
    ],
    noNewPrivileges: true,
  };
}

function resourcesOf({ cpu, memory }: ServerResources, { has_swap_limit }: { has_swap_limit: boolean }) {
  const bytes = memory * MIB;
  return {
    // The OCI runtime adds the devices that each container needs, such as /dev/null.
    devices: [{ allow: false, access: 'rwm' }],
    // With swap a server would take twice its memory.
    memory: { limit: bytes, ...(has_swap_limit && { swap: bytes }) },
    cpu: { quota: cpuQuotaOf(cpu), period: CPU_PERIOD_US },
    pids: { limit: PROCESSES_MAX },
  };
}

function mountsOf({ order, init, folder }: ContainerPlan) {
  const closed = ['nosuid', 'noexec', 'nodev'];
  const bound = (destination: string, source: string) => ({
    destination,
    source,
    type: 'bind',
    options: ['bind', 'ro', 'nosuid', 'nodev'],
  });
  // Files in /tmp and /dev/shm count as memory of the server.
  const half_memory = `size=${Math.max(1, Math.floor(order.resources.memory / 2))}m`;
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: closed },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'strictatime', 'mode=755', 'size=64k'] },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
    },
    { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: [...closed, 'mode=1777', half_memory] },
    { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: closed },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: [...closed, 'ro'] },
    { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', half_memory] },
    bound(INIT, init),
    bound('/etc/resolv.conf', `${folder}/resolv.conf`),
    bound('/etc/hosts', `${folder}/hosts`),
  ];
}

/** Files of the kernel that reveal facts about the machine, or change it. */
const MASKED_PATHS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/sys/devices/virtual/powercap',
  '/sys/firmware',
];
const READ_ONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];
