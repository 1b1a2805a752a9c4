/** What an operator should do about each problem of a service, by the code of the problem. */
const ADVICE = {
  SERVICE_STARTING: 'Wait; the log of the service says what it does.',
  SERVICE_STOPPING: 'Wait until it has stopped, then start it again: muster serve',
  DATABASE_UNAVAILABLE:
    'Start PostgreSQL, or correct DATABASE_URL; database_awaited or database_lost in the log of the service says why.',
  DATABASE_STANDBY: 'Let DATABASE_URL name the primary server of PostgreSQL.',
  DATABASE_READ_ONLY: 'Switch default_transaction_read_only off in PostgreSQL.',
  DATABASE_DISK_FULL: 'Free space on the disk of PostgreSQL, or give it a larger one.',
  OBJECTS_UNAVAILABLE: 'Correct the settings of the bucket, or start its storage; the service becomes ready by itself.',
  DISK_FULL: 'Free space on the disk of MUSTER_DATA.',
  DISK_RESERVE_USED: 'Free space on the disk of MUSTER_DATA, or set a smaller MUSTER_DISK_RESERVE_MB.',
  STORAGE_DIFFERS: 'Share one storage or bucket; storage_differs in the log names both.',
  LOOP_FAILS: 'Look for loop_failed in the log of the service, which has the cause.',
  LIMIT_NEARLY_REACHED:
    'Raise its setting if it has one (MUSTER_SOCKETS_MAX, MUSTER_WATCHERS_MAX, MUSTER_SERVERS_MAX; for files, ulimit -n), or add a machine.',
  MACHINES_DRAINED: 'Let a machine take servers again: muster machines ID --undo',
  CERTIFICATE_EXPIRES: 'Renew it; with MUSTER_ACME_HOSTS, the log says why that fails (certificate_not_issued).',
  DATABASE_CONNECTIONS_FEW: 'Raise max_connections in PostgreSQL, or lower MUSTER_DATABASE_POOL.',
  TRANSACTION_OLD:
    'End it, unless it is a backup: until then PostgreSQL removes no old rows. The hub says which program has it.',
  ISOLATION_INCOMPLETE:
    'Run servers of strangers only where the level is full: on Linux 6.12 or later, with seccomp, and with control groups for memory, processor time and processes.',
  REQUESTS_REFUSED:
    'If many players share an address, raise MUSTER_LIMITS_SCALE; behind a proxy, name it in MUSTER_TRUSTED_PROXIES. Otherwise let the client wait for Retry-After.',
} as const;

export type FindingCode = keyof typeof ADVICE;
export const FINDING_CODES = Object.keys(ADVICE) as FindingCode[];

/** A problem of a service, for its operator. */
export interface Finding {
  code: FindingCode;
  /** What is wrong, as a sentence without its capital letter and full stop. */
  message: string;
  /** What to do about it, in sentences. */
  advice: string;
}

/** Returns a problem with the advice for its code. */
export function toFinding(code: FindingCode, message: string): Finding {
  return { code, message, advice: ADVICE[code] };
}
