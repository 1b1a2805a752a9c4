// A hostile game server: it tries what it must not do, and prints what it could. It runs from its source as a build, so it
// imports nothing of the tests. Its environment names what to attack.
import { dlopen, ptr, read } from 'bun:ffi';
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

const { DATA = '', PID_OF_SERVICE = '', OTHER_ID = '', OTHER_PID = '', OTHER_PORT = '', LIMITED_MB = '' } = process.env;
const { OWN_NETWORK_OF_SERVICE = '', IPC_OF_SERVICE = '', ADDRESS_OF_MACHINE = '', MARK = '' } = process.env;
const { SOCKET_OF_MACHINE = '' } = process.env;
const service_pid = Number(PID_OF_SERVICE);
const other_pid = Number(OTHER_PID);
const api_port = Number(new URL(process.env.SERVICE_API_ENDPOINT ?? '').port);
const other = `${DATA}/servers/${OTHER_ID}`;

const IS_ARM = process.arch === 'arm64';
/** Numbers of system calls, on x64 and arm64. */
const CALLS = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  prlimit64: [302, 261],
  setpriority: [141, 140],
  sched_getaffinity: [204, 123],
  sched_setaffinity: [203, 122],
  setuid: [105, 146],
  mount: [165, 40],
  chroot: [161, 51],
  setns: [308, 268],
  socket: [41, 198],
  bind: [49, 200],
  fcntl: [72, 25],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  keyctl: [250, 219],
  userfaultfd: [323, 282],
  finit_module: [313, 273],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  io_uring_setup: [425, 425],
  pidfd_open: [434, 434],
  pidfd_getfd: [438, 438],
  shmget: [29, 194],
  shmctl: [31, 195],
  semget: [64, 190],
  semctl: [66, 191],
  msgget: [68, 186],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
} as const;

const { symbols: libc } = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
});

const EBADF = 9;
const EFAULT = 14;
/**
 * The answers of the kernel to a call that it refuses: EPERM, ENOENT, ESRCH, EACCES, ENOSYS, EPROTONOSUPPORT and
 * EAFNOSUPPORT.
 */
const REFUSALS = [1, 2, 3, 13, 38, 93, 97];

/** Makes a system call. Throws if it fails. */
function call(name: keyof typeof CALLS, ...args: number[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = args;
  const result = Number(libc.syscall(CALLS[name][IS_ARM ? 1 : 0], a, b, c, d, e, f));
  const location = libc.__errno_location();
  if (result === -1) throw new Failure(name, location === null ? 0 : read.i32(location, 0));
  return result;
}

class Failure extends Error {
  constructor(
    name: string,
    readonly errno: number,
  ) {
    super(`${name} failed with ${errno}`);
  }
}

/** Reads from an address that no process has. The kernel says so only if it would have read from another one. */
function readMemory(pid: number): void {
  const bytes = new Uint8Array(8);
  const [here, there] = [new BigUint64Array([BigInt(ptr(bytes)), 8n]), new BigUint64Array([4_096n, 8n])];
  try {
    call('process_vm_readv', pid, ptr(here), 1, ptr(there), 1);
  } catch (error) {
    if (!(error instanceof Failure) || error.errno !== EFAULT) throw error;
  }
}

/** Loads a file that is not open as a module. The kernel says so only if it would have loaded another one. */
function loadModule(): void {
  try {
    call('finit_module', -1, 0, 0);
  } catch (error) {
    if (!(error instanceof Failure) || error.errno !== EBADF) throw error;
  }
}

const text = (value: string) => ptr(Buffer.from(`${value}\0`));

function openByNumber(): void {
  const [handle, mount] = [new Uint32Array(34), new Int32Array(1)];
  handle[0] = 128;
  call('name_to_handle_at', -100, text('/'), ptr(handle), ptr(mount));
  call('open_by_handle_at', openSync('/usr', 'r'), ptr(handle), 0);
}

function holdLease(path: string): void {
  const [F_SETLEASE, F_WRLCK] = [1_024, 1];
  call('fcntl', openSync(path, 'w'), F_SETLEASE, F_WRLCK);
}

function loadProgram(): void {
  // A map of one entry, which every program in the kernel begins with.
  call('bpf', 0, ptr(new Uint32Array([2, 4, 4, 1, ...Array(28).fill(0)])), 16);
}

function countEvents(): void {
  // The time that this process uses, without that of the kernel.
  const attributes = new Uint32Array(32);
  attributes.set([1, 64]);
  attributes[10] = 1 << 5;
  call('perf_event_open', ptr(attributes), 0, -1, -1, 0);
}

function readBytes(path: string): void {
  const file = openSync(path, 'r');
  try {
    readSync(file, Buffer.alloc(1), 0, 1, 0);
  } catch (error) {
    // The first page of a memory is never there, but the file was opened.
    if (!path.endsWith('/mem')) throw error;
  } finally {
    closeSync(file);
  }
}

/** Runs a shell script. Throws if it fails. */
function run(script: string): void {
  const { exitCode, signalCode } = Bun.spawnSync(['/bin/sh', '-c', script], { stdout: 'ignore', stderr: 'ignore' });
  if (exitCode !== 0) throw new Error(`ended with ${exitCode ?? signalCode}`);
}

/** Ends the processes, too: a program that can start no thread, as later attempts do, ends. */
async function haveManyProcesses(): Promise<void> {
  const script = 'i=0; while [ $i -lt 600 ]; do sleep 600 & i=$((i+1)); done';
  const shell = Bun.spawn(['/bin/sh', '-c', script], { stdio: ['ignore', 'ignore', 'ignore'], detached: true });
  const exit_code = await shell.exited;
  try {
    for (let kills = 0; kills < 6_000; kills += 1) {
      process.kill(-shell.pid, 'SIGKILL');
      await Bun.sleep(10);
    }
  } catch {
    // None is left.
  }
  if (exit_code !== 0) throw new Error(`ended with ${exit_code}`);
}

/** The outcome of an attempt on something that only the server itself has. */
class Own extends Error {}

/** Throws if this server's network is not that of the service, so that its ports are its own. */
function checkNetwork(): void {
  if (readlinkSync('/proc/self/ns/net') !== OWN_NETWORK_OF_SERVICE) throw new Own();
}

function listen(port: number): void {
  Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true);
  checkNetwork();
}

/** Binds a socket of multipath TCP. Clients of plain TCP would reach it. */
function bindByMultipath(port: number): void {
  const [AF_INET, SOCK_STREAM, IPPROTO_MPTCP] = [2, 1, 262];
  const socket = call('socket', AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
  try {
    // struct sockaddr_in: the family, the port and the address 127.0.0.1.
    const address = Uint8Array.from([AF_INET, 0, port >> 8, port & 0xff, 127, 0, 0, 1, ...Array(8).fill(0)]);
    call('bind', socket, ptr(address), address.byteLength);
  } finally {
    closeSync(socket);
  }
  checkNetwork();
}

async function listenByUdp(port: number): Promise<void> {
  (await Bun.udpSocket({ hostname: '127.0.0.1', port })).close();
  checkNetwork();
}

/** Removes what would outlive this server. Throws if it was in a space of names that only this server has. */
function removeShared(name: 'shmctl' | 'semctl' | 'msgctl', id: number): void {
  const IPC_RMID = 0;
  call(name, id, ...(name === 'semctl' ? [0, IPC_RMID] : [IPC_RMID, 0]));
  checkIpc();
}

function checkIpc(): void {
  if (readlinkSync('/proc/self/ns/ipc') !== IPC_OF_SERVICE) throw new Own();
}

function makeQueue(): void {
  call('mq_open', text(MARK), 0o101, 0o600, 0);
  call('mq_unlink', text(MARK));
  checkIpc();
}

/** Connects to a program that listens at a path of the machine's files. */
async function connectByPath(path: string): Promise<void> {
  (await Bun.connect({ unix: path, socket: { data() {} } })).end();
}

/** Logs in to the database as its owner without a password. */
async function logIn(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const text = Buffer.from('user\0muster\0database\0postgres\0\0');
  const header = Buffer.alloc(8);
  header.writeInt32BE(text.length + header.length, 0);
  header.writeInt32BE(3 << 16, 4);
  await Bun.connect({
    unix: `${DATA}/postgres/socket/.s.PGSQL.5432`,
    socket: {
      open: (socket) => void socket.write(Buffer.concat([header, text])),
      // The answer "R" with 0 means that the client is logged in.
      data: (_, bytes) => (bytes[0] === 82 && bytes.readInt32BE(5) === 0 ? resolve() : reject(new Error('refused'))),
      close: () => reject(new Error('closed')),
    },
  });
  await promise;
}

function groupOf(controller: string): string {
  const line = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .find((one) => one.split(':')[1] === controller);
  return `/sys/fs/cgroup/${controller}${line?.split(':')[2] ?? '/none'}`;
}

const memory = new Float64Array(512);
const own = (pid: number) => ({
  environ: () => readBytes(`/proc/${pid}/environ`),
  maps: () => readBytes(`/proc/${pid}/maps`),
  mem: () => readBytes(`/proc/${pid}/mem`),
  fd: () => readlinkSync(`/proc/${pid}/fd/0`),
  cmdline: () => readBytes(`/proc/${pid}/cmdline`),
  vm: () => readMemory(pid),
  trace: () => call('ptrace', 0x4206, pid, 0, 0),
  signal: () => process.kill(pid, 0),
  limits: () => call('prlimit64', pid, 7, 0, ptr(memory)),
  priority: () => call('setpriority', 0, pid, 0),
  processors: () => {
    call('sched_getaffinity', pid, memory.byteLength, ptr(memory));
    call('sched_setaffinity', pid, 128, ptr(memory));
  },
});
const [service, neighbor] = [own(service_pid), own(other_pid)];

/** Keeps all processors busy. Throws if the kernel slows this server down, as far as this server can read it. */
async function takeProcessorTime(): Promise<void> {
  const isSlowed = () => existsSync(statistics) && !/^nr_throttled 0$/m.test(readFileSync(statistics, 'utf8'));
  const statistics = `${groupOf('cpu')}/cpu.stat`;
  const busy = Array.from({ length: 4 }, () => Bun.spawn(['/bin/sh', '-c', 'while :; do :; done']));
  try {
    for (let look = 0; look < 100; look += 1) {
      await Bun.sleep(50);
      if (isSlowed()) throw new Error('slowed down');
    }
  } finally {
    for (const one of busy) one.kill('SIGKILL');
  }
}

/** The attempts, as docs/isolation-attempts.md lists them. */
const ATTEMPTS: Record<string, () => unknown> = {
  'list the data directory': () => readdirSync(DATA),
  "read the administrator's token": () => readBytes(`${DATA}/administrator-token`),
  'write to the data directory': () => writeFileSync(`${DATA}/intruder`, ''),
  "read the database's files": () => readBytes(`${DATA}/postgres/cluster/PG_VERSION`),
  'log in to the database': logIn,
  'list uploaded files': () => readdirSync(`${DATA}/objects`),
  'list builds of others': () => readdirSync(`${DATA}/builds`),
  'change its own build': () => writeFileSync(Bun.main, ''),
  'change the program that runs servers': () => closeSync(openSync(process.execPath, 'r+')),
  "change the mode of the service's files": () => chmodSync(`${DATA}/administrator-token`, 0o600),
  "read the service's environment": service.environ,
  "read the service's memory map": service.maps,
  "read the service's memory": service.mem,
  "see the service's open files": service.fd,
  "read the service's memory by process_vm_readv": service.vm,
  'trace the service': service.trace,
  'take an open file of the service': () => call('pidfd_getfd', call('pidfd_open', service_pid, 0), 2, 0),
  'send the service a signal': service.signal,
  "change the service's limits": service.limits,
  "change the service's priority": service.priority,
  "choose the service's processors": service.processors,
  "read the service's command line": service.cmdline,
  "read another server's environment, with its token": neighbor.environ,
  "read another server's memory map": neighbor.maps,
  "read another server's memory": neighbor.mem,
  "see another server's open files": neighbor.fd,
  "read another server's memory by process_vm_readv": neighbor.vm,
  'trace another server': neighbor.trace,
  'send another server a signal': neighbor.signal,
  "change another server's limits": neighbor.limits,
  "list another server's directory": () => readdirSync(`${other}/work`),
  "read another server's output": () => readBytes(`${other}/std_out`),
  "listen on another server's TCP port": () => listen(Number(OTHER_PORT)),
  "listen on another server's TCP port by multipath TCP": () => bindByMultipath(Number(OTHER_PORT)),
  "listen on another server's UDP port": () => listenByUdp(Number(OTHER_PORT)),
  "read another server's command line": neighbor.cmdline,
  'become root': () => call('setuid', 0),
  'gain rights by a set-user-ID program': () => {
    if (/^NoNewPrivs:\s*1$/m.test(readFileSync('/proc/self/status', 'utf8'))) throw new Error('never');
  },
  'read /etc/shadow': () => readBytes('/etc/shadow'),
  'write to /tmp': () => writeFileSync(`/tmp/${MARK}`, ''),
  'write to /dev/shm': () => writeFileSync(`/dev/shm/${MARK}`, ''),
  'mount a file system': () => call('mount', text('none'), text('/mnt'), text('tmpfs')),
  'make a user namespace': () => run('unshare -U true'),
  'enter a namespace': () => call('setns', call('pidfd_open', service_pid, 0), 0x04000000),
  'change its root directory': () => call('chroot', text('/')),
  'open a raw socket': () => call('socket', 2, 3, 1),
  'open a packet socket': () => call('socket', 17, 3, 0),
  "open a socket of the kernel's cryptography": () => call('socket', 38, 5, 0),
  'load a program into the kernel (bpf)': loadProgram,
  'count events of the processor (perf_event_open)': countEvents,
  "use the kernel's keys": () => call('keyctl', 0, -3, 1),
  'make memory that outlives it (System V)': () => removeShared('shmctl', call('shmget', 0, 4_096, 0o600)),
  'make semaphores that outlive it (System V)': () => removeShared('semctl', call('semget', 0, 1, 0o600)),
  'make a queue that outlives it (System V)': () => removeShared('msgctl', call('msgget', 0, 0o600)),
  'make a queue that outlives it (mq_open)': makeQueue,
  'use io_uring': () => call('io_uring_setup', 1, ptr(new Uint8Array(120))),
  'handle page faults (userfaultfd)': () => call('userfaultfd', 1),
  'load a kernel module': loadModule,
  'open files by their numbers': openByNumber,
  'hold a lease on a file, so that others wait': () => holdLease(`${process.env.HOME ?? '/tmp'}/leased`),
  'leave its control group': () => writeFileSync(`${dirname(groupOf('pids'))}/cgroup.procs`, String(process.pid)),
  'have more than 8,192 open files': () => {
    const files: number[] = [];
    try {
      while (files.length < 8_192) files.push(openSync('/dev/null', 'r'));
    } finally {
      for (const file of files) closeSync(file);
    }
  },
  'take more than its memory': () =>
    run(`head -c ${(Number(LIMITED_MB) + 64) * 1_024 ** 2} /dev/zero | tail | wc -c | grep -v '^0$'`),
  'take more than its processor time': takeProcessorTime,
  'have more than 512 processes': haveManyProcesses,
  "connect to another program at the machine's address": async () =>
    (await fetch(ADDRESS_OF_MACHINE, { signal: AbortSignal.timeout(5_000) })).ok,
  "connect to another program at its unix socket's path": () => connectByPath(SOCKET_OF_MACHINE),
  'connect to the API': async () => (await fetch(`${process.env.SERVICE_API_ENDPOINT}/health/live`)).ok,
};

const report = (attempt: string, outcome: string) => console.log(`PROBE ${JSON.stringify({ attempt, outcome })}`);

// A machine without a network has no address to try.
if (ADDRESS_OF_MACHINE === '') delete ATTEMPTS["connect to another program at the machine's address"];

for (const [attempt, work] of Object.entries(ATTEMPTS)) {
  try {
    await work();
    report(attempt, 'possible');
  } catch (error) {
    if (error instanceof Own) report(attempt, 'own');
    // The attempt itself is wrong, so it says nothing.
    else if (error instanceof Failure && !REFUSALS.includes(error.errno)) report(attempt, `unclear: ${error.message}`);
    else report(attempt, `refused: ${error instanceof Error ? error.message : error}`);
  }
}
console.log('PROBE done');

// The test stops the service now.
const IN_RESTART = "listen on the API's port while the service restarts";
setInterval(() => {
  try {
    listen(api_port);
    report(IN_RESTART, 'possible');
  } catch (error) {
    if (error instanceof Own) return report(IN_RESTART, 'own');
    // Taken, by the service or by the process that holds it, or forbidden.
    const code = error instanceof Error && 'code' in error ? error.code : '';
    report(IN_RESTART, `refused: ${code}`);
  }
}, 20);
