import { FAIL_WITH, INSTRUCTION_BYTES } from './seccomp-constants.ts';

/** The numbers of a system call on x64, arm64 and 32-bit x86; undefined where there is no such call. */
type Numbers = [x64?: number, arm64?: number, x86?: number];

/**
 * The system calls that a game server may not make. Most need a capability that a server does not have: refusing them
 * keeps faults of the kernel out of reach.
 */
const DENIED: Record<string, Numbers> = {
  // Other processes' memory.
  ptrace: [101, 117, 26],
  process_vm_readv: [310, 270, 347],
  process_vm_writev: [311, 271, 348],
  kcmp: [312, 272, 349],
  pidfd_getfd: [438, 438, 438],
  // File systems.
  mount: [165, 40, 21],
  umount: [undefined, undefined, 22],
  umount2: [166, 39, 52],
  pivot_root: [155, 41, 217],
  chroot: [161, 51, 61],
  open_tree: [428, 428, 428],
  move_mount: [429, 429, 429],
  fsopen: [430, 430, 430],
  fsconfig: [431, 431, 431],
  fsmount: [432, 432, 432],
  fspick: [433, 433, 433],
  mount_setattr: [442, 442, 442],
  open_by_handle_at: [304, 265, 342],
  fanotify_init: [300, 262, 338],
  quotactl: [179, 60, 131],
  quotactl_fd: [443, 443, 443],
  swapon: [167, 224, 87],
  swapoff: [168, 225, 115],
  // Namespaces; those of clone are refused by its flags.
  unshare: [272, 97, 310],
  setns: [308, 268, 346],
  // The kernel itself.
  bpf: [321, 280, 357],
  perf_event_open: [298, 241, 336],
  userfaultfd: [323, 282, 374],
  io_uring_setup: [425, 425, 425],
  io_uring_enter: [426, 426, 426],
  io_uring_register: [427, 427, 427],
  init_module: [175, 105, 128],
  finit_module: [313, 273, 350],
  delete_module: [176, 106, 129],
  kexec_load: [246, 104, 283],
  kexec_file_load: [320, 294, undefined],
  reboot: [169, 142, 88],
  acct: [163, 89, 51],
  syslog: [103, 116, 103],
  iopl: [172, undefined, 110],
  ioperm: [173, undefined, 101],
  // Memory, queues and semaphores of the kernel, which servers would share, and which outlive their makers. Those of other
  // programs of the same user can be used by their numbers alone. With `ipc`, programs of 32-bit x86 do all of it.
  shmget: [29, 194, 395],
  shmat: [30, 196, 397],
  shmctl: [31, 195, 396],
  shmdt: [67, 197, 398],
  msgget: [68, 186, 399],
  msgsnd: [69, 189, 400],
  msgrcv: [70, 188, 401],
  msgctl: [71, 187, 402],
  semget: [64, 190, 393],
  semop: [65, 193, undefined],
  semctl: [66, 191, 394],
  semtimedop: [220, 192, undefined],
  semtimedop_time64: [undefined, undefined, 420],
  ipc: [undefined, undefined, 117],
  mq_open: [240, 180, 277],
  mq_unlink: [241, 181, 278],
  // Keys of the kernel, which servers would share.
  keyctl: [250, 219, 288],
  add_key: [248, 217, 286],
  request_key: [249, 218, 287],
};

/**
 * The system calls by which a process changes other processes of its user, with the first arguments that mean the
 * caller itself. Landlock does not restrict these calls.
 */
const SELF_ONLY: Record<string, { numbers: Numbers; arguments: [first: number, second?: number] }> = {
  prlimit64: { numbers: [302, 261, 340], arguments: [0] },
  sched_setaffinity: { numbers: [203, 122, 241], arguments: [0] },
  sched_setscheduler: { numbers: [144, 119, 156], arguments: [0] },
  sched_setparam: { numbers: [142, 118, 154], arguments: [0] },
  sched_setattr: { numbers: [314, 274, 351], arguments: [0] },
  setpriority: { numbers: [141, 140, 97], arguments: [0, 0] },
  ioprio_set: { numbers: [251, 30, 289], arguments: [1, 0] },
};

interface InstructionSet {
  /** The kernel's name of it (AUDIT_ARCH). */
  arch: number;
  /** The column of its numbers in the table. */
  column: 0 | 1 | 2;
  clone: number;
  clone3: number;
  socket: number;
  socketpair: number;
  setsockopt: number;
  /** 32-bit x86 has a second one, for large files. */
  fcntl: number[];
}

const X64: InstructionSet = {
  arch: 0xc000003e,
  column: 0,
  clone: 56,
  clone3: 435,
  socket: 41,
  socketpair: 53,
  setsockopt: 54,
  fcntl: [72],
};
const ARM64: InstructionSet = {
  arch: 0xc00000b7,
  column: 1,
  clone: 220,
  clone3: 435,
  socket: 198,
  socketpair: 199,
  setsockopt: 208,
  fcntl: [25],
};
const X86: InstructionSet = {
  arch: 0x40000003,
  column: 2,
  clone: 120,
  clone3: 435,
  socket: 359,
  socketpair: 360,
  setsockopt: 366,
  fcntl: [55, 221],
};

/** The flags of clone(2) that make namespaces, without CLONE_NEWTIME, which has the bits of a signal there. */
const NAMESPACE_FLAGS = 0x7e020000;
/** Set in the numbers of the x32 interface, which has numbers of its own for all calls. */
const X32_BIT = 0x40000000;
const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16];
const [SOCKET_TYPE_MASK, SOCK_RAW, SOCK_PACKET] = [0xf, 3, 10];
/** Protocols that listen on TCP ports. Landlock does not restrict the ports of their sockets. */
const [IPPROTO_SMC, IPPROTO_MPTCP] = [256, 262];
/** The protocol of netlink by which programs list network interfaces. By others they would see all processes start. */
const NETLINK_ROUTE = 0;
/**
 * Options of sockets by which a program listens on a TCP port of its choice without bind(2), the only call that Landlock
 * checks, and turns a socket of TCP into one of SMC.
 */
const PORT_OPTIONS = [
  { level: 0, name: 51 /* IP_LOCAL_PORT_RANGE */ },
  { level: 6, name: 31 /* TCP_ULP */ },
];
/** Commands of fcntl(2) by which a process makes others wait that open or remove its files. Linux 6.19 has the second. */
const [F_SETLEASE, F_SETDELEG] = [1_024, 1_040];

// Instructions of classic BPF (linux/bpf_common.h).
const LOAD = 0x20;
const AND = 0x54;
const JUMP = 0x05;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;
/** Offsets in struct seccomp_data. Of an argument, the lower half. */
const [NUMBER_AT, ARCH_AT, FIRST_ARGUMENT_AT, SECOND_ARGUMENT_AT, THIRD_ARGUMENT_AT] = [0, 4, 16, 24, 32];
const ALLOW = 0x7fff0000;
const [EPERM, ENOSYS, ENOPROTOOPT, EPROTONOSUPPORT] = [1, 38, 92, 93];

/** An instruction; the jumps count the instructions to skip if the condition holds, and if not. */
interface Instruction {
  code: number;
  value: number;
  if_true?: number;
  if_false?: number;
}

const fail = (errno: number): Instruction => ({ code: RETURN, value: FAIL_WITH | errno });
const allow: Instruction = { code: RETURN, value: ALLOW };
const load = (offset: number): Instruction => ({ code: LOAD, value: offset });

/** Runs the instructions if the comparison holds for the loaded value. */
function when(code: number, value: number, then: Instruction[]): Instruction[] {
  return [{ code, value, if_true: 0, if_false: then.length }, ...then];
}

interface FilterOptions {
  processor: 'x64' | 'arm64';
  /** Whether other programs run as the same user. */
  shares_user: boolean;
}

/** Makes the filter for the programs of a processor, as the kernel reads it (struct sock_filter). */
export function makeSeccompFilter({ processor, shares_user }: FilterOptions): Uint8Array {
  const instruction_sets = processor === 'x64' ? [X64, X86] : [ARM64];
  const sections = instruction_sets.map((one) => ({ one, rules: rulesOf(one, shares_user) }));
  // Programs of any other instruction set can do nothing.
  const program = [load(ARCH_AT)];
  for (const { one, rules } of sections) {
    const skip: Instruction = { code: JUMP, value: rules.length };
    program.push({ code: JUMP_IF_EQUAL, value: one.arch, if_true: 1, if_false: 0 }, skip, ...rules);
  }
  return encode([...program, fail(EPERM)]);
}

/** The rules for calls of one instruction set. They always return. */
function rulesOf(
  { column, clone, clone3, socket, socketpair, setsockopt, fcntl }: InstructionSet,
  shares_user: boolean,
): Instruction[] {
  const denied = Object.values(DENIED).flatMap((numbers) => numbers[column] ?? []);
  return [
    load(NUMBER_AT),
    ...(column === 0 ? when(JUMP_IF_AT_LEAST, X32_BIT, [fail(EPERM)]) : []),
    ...denied.flatMap((number) => when(JUMP_IF_EQUAL, number, [fail(EPERM)])),
    // Its flags are in memory, where a filter cannot read them. C libraries use clone instead.
    ...when(JUMP_IF_EQUAL, clone3, [fail(ENOSYS)]),
    ...when(JUMP_IF_EQUAL, clone, [
      load(FIRST_ARGUMENT_AT),
      ...when(JUMP_IF_ANY_BIT, NAMESPACE_FLAGS, [fail(EPERM)]),
      allow,
    ]),
    ...when(JUMP_IF_EQUAL, socket, socketRules()),
    ...when(JUMP_IF_EQUAL, socketpair, [
      load(FIRST_ARGUMENT_AT),
      ...when(JUMP_IF_EQUAL, AF_UNIX, [allow]),
      fail(EPERM),
    ]),
    ...when(JUMP_IF_EQUAL, setsockopt, portOptionRules()),
    ...fcntl.flatMap((number) => when(JUMP_IF_EQUAL, number, leaseRules())),
    ...(shares_user ? selfOnlyRules(column) : []),
    allow,
  ];
}

function selfOnlyRules(column: InstructionSet['column']): Instruction[] {
  return Object.values(SELF_ONLY).flatMap(({ numbers, arguments: [first, second] }) => {
    const number = numbers[column];
    if (number === undefined) return [];
    const second_check =
      second === undefined ? [allow] : [load(SECOND_ARGUMENT_AT), ...when(JUMP_IF_EQUAL, second, [allow])];
    return when(JUMP_IF_EQUAL, number, [
      load(FIRST_ARGUMENT_AT),
      ...when(JUMP_IF_EQUAL, first, second_check),
      fail(EPERM),
    ]);
  });
}

/**
 * Allows sockets of the Internet that are not raw and whose ports Landlock restricts, unix sockets, and those that list
 * network interfaces.
 */
function socketRules(): Instruction[] {
  // Programs that prefer multipath TCP, as those in Go do, use TCP if the kernel does not support it.
  const of_internet = [
    load(SECOND_ARGUMENT_AT),
    { code: AND, value: SOCKET_TYPE_MASK },
    ...when(JUMP_IF_EQUAL, SOCK_RAW, [fail(EPERM)]),
    ...when(JUMP_IF_EQUAL, SOCK_PACKET, [fail(EPERM)]),
    load(THIRD_ARGUMENT_AT),
    ...when(JUMP_IF_EQUAL, IPPROTO_SMC, [fail(EPROTONOSUPPORT)]),
    ...when(JUMP_IF_EQUAL, IPPROTO_MPTCP, [fail(EPROTONOSUPPORT)]),
    allow,
  ];
  return [
    load(FIRST_ARGUMENT_AT),
    ...when(JUMP_IF_EQUAL, AF_UNIX, [allow]),
    ...when(JUMP_IF_EQUAL, AF_NETLINK, [
      load(THIRD_ARGUMENT_AT),
      ...when(JUMP_IF_EQUAL, NETLINK_ROUTE, [allow]),
      fail(EPROTONOSUPPORT),
    ]),
    ...when(JUMP_IF_EQUAL, AF_INET, of_internet),
    ...when(JUMP_IF_EQUAL, AF_INET6, of_internet),
    fail(EPERM),
  ];
}

/** Refuses {@link PORT_OPTIONS} as a kernel without them does. */
function portOptionRules(): Instruction[] {
  return [
    ...PORT_OPTIONS.flatMap(({ level, name }) => [
      load(SECOND_ARGUMENT_AT),
      ...when(JUMP_IF_EQUAL, level, [load(THIRD_ARGUMENT_AT), ...when(JUMP_IF_EQUAL, name, [fail(ENOPROTOOPT)])]),
    ]),
    allow,
  ];
}

/** Refuses leases on files. */
function leaseRules(): Instruction[] {
  return [
    load(SECOND_ARGUMENT_AT),
    ...when(JUMP_IF_EQUAL, F_SETLEASE, [fail(EPERM)]),
    ...when(JUMP_IF_EQUAL, F_SETDELEG, [fail(EPERM)]),
    allow,
  ];
}

function encode(program: Instruction[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(program.length * INSTRUCTION_BYTES));
  for (const [index, { code, value, if_true = 0, if_false = 0 }] of program.entries()) {
    const offset = index * INSTRUCTION_BYTES;
    view.setUint16(offset, code, true);
    view.setUint8(offset + 2, if_true);
    view.setUint8(offset + 3, if_false);
    view.setUint32(offset + 4, value, true);
  }
  return new Uint8Array(view.buffer);
}
