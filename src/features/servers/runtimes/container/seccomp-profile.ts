/** System calls that containers may make: the ones that container engines allow without capabilities. */
const ALLOWED = `
  _llseek _newselect accept accept4 access adjtimex alarm arch_prctl arm_fadvise64_64 arm_sync_file_range bind
  breakpoint brk cacheflush capget capset chdir chmod chown chown32 clock_adjtime clock_adjtime64 clock_getres
  clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range
  connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait
  epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2
  fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchown fchown32 fchownat
  fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync
  ftruncate ftruncate64 futex futex_time64 futex_waitv futimesat get_mempolicy get_robust_list get_thread_area getcpu getcwd
  getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer
  getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32
  getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr inotify_add_watch
  inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_setup io_submit ioctl
  ioprio_get ioprio_set ipc kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32
  lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise mbind
  membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 modify_ldt
  mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64
  mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat
  openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64
  prctl pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6
  pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readdir readlink readlinkat readv recv recvfrom
  recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir
  rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
  sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
  sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop
  semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto set_mempolicy set_robust_list
  set_thread_area set_tid_address set_tls setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups
  setgroups32 setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32
  setreuid setreuid32 setrlimit setsid setsockopt setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown
  sigaction sigaltstack signal signalfd signalfd4 sigpending sigprocmask sigreturn sigsuspend socketcall splice
  stat stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs syscall sysinfo
  tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime
  timer_settime64 timerfd timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times
  tkill truncate truncate64 ugetrlimit umask uname unlink unlinkat utime utimensat utimensat_time64 utimes vfork
  wait4 waitid waitpid write writev
`;

/** System calls that exist and are forbidden: mounts, namespaces, keys, modules, the clock. They fail with EPERM. */
const FORBIDDEN = `
  acct add_key bdflush bpf chroot clock_settime clock_settime64 delete_module fanotify_init finit_module fsconfig
  fsmount fsopen fspick init_module io_pgetevents ioperm iopl kcmp kexec_file_load kexec_load keyctl
  lookup_dcookie migrate_pages mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl nice
  oldfstat oldlstat oldolduname oldstat olduname open_by_handle_at open_tree pciconfig_iobase pciconfig_read
  pciconfig_write perf_event_open pidfd_getfd pivot_root process_madvise query_module quotactl reboot request_key
  setdomainname sethostname setns settimeofday sgetmask ssetmask stime swapcontext swapoff swapon sysfs syslog
  umount umount2 unshare uselib userfaultfd ustat vhangup vm86 vm86old vmsplice
`;

/** The arguments that `personality` may have: those of usual and of 32-bit programs, and the one that only reads it. */
const PERSONALITIES = [0, 0x8, 0x20000, 0x20008, 0xffffffff];

/** Local, IPv4 and IPv6. */
const ADDRESS_FAMILIES = [1, 2, 10];
/** Of pairs of sockets: local. */
const PAIR_FAMILIES = [1];
/** Sockets of netlink by which programs list addresses: the family and the protocol. */
const [AF_NETLINK, NETLINK_ROUTE] = [16, 0];

/**
 * The commands of `fcntl` from 1,024 on that programs may use. By the others, F_SETLEASE (1,024) and F_SETDELEG (1,040), a
 * program makes others wait that open or remove its files.
 */
const FILE_COMMANDS = Array.from({ length: 14 }, (_, index) => 1_025 + index);

/** Set in no command of `fcntl` below 1,024. */
const LATER_FILE_COMMANDS = 0xfffffc00;

/** The flags by which `clone` creates namespaces. */
const NAMESPACE_FLAGS = 0x7e020000;

/** Programs of 32-bit x86 have a second one, for large files. */
const FCNTL = ['fcntl', 'fcntl64'];

const ENOSYS = 38;
const EPERM = 1;

const ARCHITECTURES = process.arch === 'arm64' ? ['SCMP_ARCH_AARCH64'] : ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86'];

const namesOf = (list: string) => list.trim().split(/\s+/);
/** Allows calls whose arguments have these values, by their indices. */
const whenArgumentsAre = (names: string[], values: Record<number, number>) => ({
  names,
  action: 'SCMP_ACT_ALLOW',
  args: Object.entries(values).map(([index, value]) => ({ index: Number(index), value, op: 'SCMP_CMP_EQ' })),
});
const whenArgumentIs = (names: string[], index: number) => (value: number) =>
  whenArgumentsAre(names, { [index]: value });
/** Allows calls of which an argument has none of these bits. */
const whenArgumentLacks = (names: string[], index: number, bits: number) => ({
  names,
  action: 'SCMP_ACT_ALLOW',
  args: [{ index, value: bits, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
});

/**
 * The filter of system calls, as in the OCI runtime specification. A call that is in no list does not exist for the program,
 * so libraries use an older one: `clone3`, whose flags a filter cannot read, becomes `clone`.
 */
export const SECCOMP_PROFILE = {
  defaultAction: 'SCMP_ACT_ERRNO',
  defaultErrnoRet: ENOSYS,
  architectures: ARCHITECTURES,
  syscalls: [
    { names: namesOf(ALLOWED), action: 'SCMP_ACT_ALLOW' },
    { names: namesOf(FORBIDDEN), action: 'SCMP_ACT_ERRNO', errnoRet: EPERM },
    whenArgumentLacks(['clone'], 0, NAMESPACE_FLAGS),
    whenArgumentLacks(FCNTL, 1, LATER_FILE_COMMANDS),
    ...FILE_COMMANDS.map(whenArgumentIs(FCNTL, 1)),
    ...ADDRESS_FAMILIES.map(whenArgumentIs(['socket'], 0)),
    whenArgumentsAre(['socket'], { 0: AF_NETLINK, 2: NETLINK_ROUTE }),
    ...PAIR_FAMILIES.map(whenArgumentIs(['socketpair'], 0)),
    ...PERSONALITIES.map(whenArgumentIs(['personality'], 0)),
  ],
};

/**
 * The same filter as Docker and Podman read it. Some of their releases know no error of a filter's default action, and a
 * C library falls back from `clone3` only if that does not exist.
 */
export const ENGINE_SECCOMP_PROFILE = JSON.stringify({
  ...SECCOMP_PROFILE,
  syscalls: [...SECCOMP_PROFILE.syscalls, { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS }],
});
