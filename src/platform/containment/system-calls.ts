import { dlopen, FFIType, read } from 'bun:ffi';

const { i64_fast, u64_fast } = FFIType;
const WORD = FFIType.i64;

/** System calls by number. They act on the calling thread, which is the one that will execute the next program. */
const { symbols: libc } = dlopen('libc.so.6', {
  syscall: { args: [WORD, WORD, WORD, WORD, WORD, WORD], returns: i64_fast },
  __errno_location: { args: [], returns: u64_fast },
});

interface Numbers {
  read: number;
  write: number;
  close: number;
  openat: number;
  chdir: number;
  setgroups: number;
  setresgid: number;
  setresuid: number;
  prlimit64: number;
  prctl: number;
  seccomp: number;
  execve: number;
  dup3: number;
  rt_sigaction: number;
  rt_sigprocmask: number;
}

/** Numbers that differ between machines. */
const NUMBERS: Record<'x64' | 'arm64', Numbers> = {
  x64: {
    read: 0,
    write: 1,
    close: 3,
    openat: 257,
    chdir: 80,
    setgroups: 116,
    setresgid: 119,
    setresuid: 117,
    prlimit64: 302,
    prctl: 157,
    seccomp: 317,
    execve: 59,
    dup3: 292,
    rt_sigaction: 13,
    rt_sigprocmask: 14,
  },
  arm64: {
    read: 63,
    write: 64,
    close: 57,
    openat: 56,
    chdir: 49,
    setgroups: 159,
    setresgid: 149,
    setresuid: 147,
    prlimit64: 261,
    prctl: 167,
    seccomp: 277,
    execve: 221,
    dup3: 24,
    rt_sigaction: 134,
    rt_sigprocmask: 135,
  },
};
/** Numbers that are the same on all machines. */
const COMMON = {
  close_range: 436,
  landlock_create_ruleset: 444,
  landlock_add_rule: 445,
  landlock_restrict_self: 446,
} as const;

const numbers = { ...COMMON, ...NUMBERS[process.arch === 'arm64' ? 'arm64' : 'x64'] };
export type SystemCall = keyof typeof numbers;

/** Makes a system call. Returns its result, which is negative after a failure: then it is the error number. */
export function trySystemCall(name: SystemCall, ...args: number[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = args;
  const result = Number(libc.syscall(numbers[name], a, b, c, d, e));
  return result === -1 ? -errno() : result;
}

/** Makes a system call that must succeed. Throws an error with the number of the failure. */
export function systemCall(name: SystemCall, ...args: number[]): number {
  const result = trySystemCall(name, ...args);
  if (result < 0) throw new Error(`${name} failed with error ${-result}`);
  return result;
}

/** Returns the number of the last failure. */
function errno(): number {
  return read.i32(Number(libc.__errno_location()), 0);
}
