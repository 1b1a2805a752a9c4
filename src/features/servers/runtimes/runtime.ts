import type { BuildKind, UnpackedBuild } from '../../builds/builds.ts';
import type { Identity, LogStream, ServerPort } from '../tables.ts';

export type { Identity } from '../tables.ts';

/** A server of a machine. The identity is undefined until it is recorded. */
export interface ServerHandle {
  server_id: string;
  identity: Identity | undefined;
}

/** A server with the ports that it may listen on. */
export interface ServerWithPorts extends ServerHandle {
  ports: Record<string, ServerPort>;
}

/** What a server may use. */
export interface ServerResources {
  /** Thousandths of a core. */
  cpu: number;
  /** MiB. */
  memory: number;
}

/** Processes and threads of a server. */
export const PROCESSES_MAX = 512;

/** Everything a runtime needs to start a server. */
export interface StartOrder {
  server_id: string;
  build_id: string;
  build: UnpackedBuild;
  resources: ServerResources;
  /** The ports that the server listens on. */
  ports: Record<string, ServerPort>;
  /** Appended to the build's command. */
  arguments: string[];
  /** The complete environment of the server, except for the variables of the runtime itself. */
  environment: Record<string, string>;
}

/** A server that the runtime has accepted. */
export type Accepted =
  /**
   * It does not run yet. `reason` says why, in the runtime's words. `can_stop`: its program has started, so that it can
   * be stopped.
   */
  | { is: 'pending'; identity: Identity; reason: string; can_stop?: true }
  /** `host`: the name or address at which players reach its ports. */
  | { is: 'running'; identity: Identity; host: string };

/** The state of a server, as observed by the runtime. */
export type Observation =
  /** It was never started, or nothing of it is left. */
  | { is: 'absent' }
  | Accepted
  /**
   * It has ended. Code and signal are null if the exit status is unknown. `reason`: why the machine ended it.
   * `is_disruption`: the reason is not in the server, such as a lost node of a cluster.
   */
  | { is: 'ended'; exit_code: number | null; exit_signal: string | null; reason?: string; is_disruption?: true }
  /** Unknown, because its machine does not answer. `for_ms`: for how long, as this process has measured. */
  | { is: 'unreachable'; for_ms: number };

/** The end of a server whose exit status is unknown. */
export const UNKNOWN_END = { is: 'ended', exit_code: null, exit_signal: null } as const;
/** Why a server in a container is pending. */
export const SETTING_UP = 'its container is being set up';

/** Unread output of a stream beyond this is dropped, because the server writes faster than its log can be stored. */
export const BACKLOG_BYTES_MAX = 8 * 1_024 ** 2;

/** Where to continue reading a server's output: text that only the runtime interprets. */
export type ResumePoint = string;

export interface OutputQuery {
  /** Undefined for the beginning. The runtime may discard output before this point. */
  from: ResumePoint | undefined;
  bytes_max: number;
  /** If more than this is unread, the runtime may skip all but the last `bytes_max`. */
  backlog_bytes_max: number;
}

/** When a part of a piece was written. */
export interface WrittenPart {
  /** The part ends after this many bytes of the piece, and begins where the one before ends. */
  until: number;
  /** How long ago its last byte was written. */
  age_ms: number;
}

/** A piece of a server's output, not necessarily of whole lines. */
export interface OutputPiece {
  bytes: Uint8Array;
  /** Bytes of output before this piece that can no longer be read. It is a minimum: more may be missing. */
  skipped_bytes: number;
  /** Whether there is more to read now. */
  has_more: boolean;
  /** When the parts of this piece were written, in order, as near as the runtime knows. The rest was written just now. */
  written?: readonly WrittenPart[];
  /** Returns the resume point after the given number of bytes of this piece. */
  resumeAfter(bytes: number): ResumePoint;
}

/** What a server has on the disk. */
export interface DiskUse {
  bytes: number;
  /** Files and folders. */
  files: number;
  /** Whether a part of it cannot be counted. Then it counts as above every limit. */
  is_uncountable?: boolean;
}

/** How well servers are kept from the service's data, from each other, and within their resources. */
export interface Isolation {
  level: 'full' | 'partial' | 'off';
  /** What is not enforced. Empty if isolation is off, because then nothing is meant to be. */
  missing: string[];
}

/** A runtime that this machine does not have: why, and what to do about it. */
export interface MissingRuntime {
  why_missing: string;
}

/** What a server has used. */
export interface UsageReading {
  /** Processor time since its start, with its descendants. */
  cpu_ms: number;
  /** Memory that it has now. */
  memory_bytes?: number;
  /** Bytes over its network since its start. Only a server with a network of its own has them. */
  received_bytes?: number;
  sent_bytes?: number;
}

/** Runs servers on a machine. Repeating any call is harmless. One test suite runs on every runtime. */
export interface Runtime {
  readonly kinds: readonly BuildKind[];
  /** Undefined if the runtime does not know it. */
  readonly isolation?: Isolation;
  /** Returns the isolation of the servers of one kind, if kinds differ. */
  isolationOf?(kind: BuildKind): Isolation | undefined;
  /** Kinds whose servers listen on the ports that their developers asked for, because each has a network of its own. */
  readonly kinds_with_own_network?: readonly BuildKind[];
  /** Why no runtime of this machine runs the other kinds, and what to do about it. */
  readonly why_missing?: string;
  /** The name or address at which players reach all of its servers, if it is known before they start. */
  readonly host?: string;
  /** Starts a server unless it has been started. Throws an error with the reason if that is impossible. */
  start(order: StartOrder): Promise<Accepted>;
  /** Returns the state of each server, by id. */
  observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>>;
  /** Asks a running server to end. Returns false if the server cannot be asked yet. */
  stop(server: ServerHandle): Promise<boolean>;
  /**
   * Kills servers and everything that they started. Returns the ids of the servers that have ended completely. Calls
   * `onGone` once with each of them, as soon as it has, so that one that does not die delays no other.
   */
  kill(servers: readonly ServerHandle[], onGone?: (server_id: string) => void): Promise<Set<string>>;
  /** Reads the output of a server, also after its end, until it is removed. */
  readOutput(server: ServerHandle, stream: LogStream, query: OutputQuery): Promise<OutputPiece>;
  /** Removes the files of a server that has ended completely. */
  remove(server_id: string): Promise<void>;
  /** Lists the servers of which processes or files may be left. */
  list(): Promise<ServerHandle[]>;
  /** Sets the listener for when a server may have started or ended. */
  onChange(listener: () => void): void;
  /** What other machines left in the cluster that this one shares with them. */
  readonly other_machines?: {
    /** Returns the ids of the servers of other machines. */
    list(machine_ids: readonly string[]): Promise<string[]>;
    /** Kills a server of another machine, if its node answers, and removes it. */
    remove(server_id: string): Promise<void>;
  };
  /** Returns what each running server has used. */
  readUsage?(servers: readonly ServerHandle[]): Promise<Map<string, UsageReading>>;
  /** Returns what each server has on the disk. May stop counting above the limit. */
  measureDisk?(servers: readonly ServerHandle[], limit: DiskUse): Promise<Map<string, DiskUse>>;
  /** Returns a TCP port of this machine on which a server listens although it may not, for each server that does so. */
  findStrayPorts?(servers: readonly ServerWithPorts[]): Promise<Map<string, number>>;
  /** Returns the ids of those servers that use a TCP port of this machine, on any address. */
  findServersOnPort?(servers: readonly ServerHandle[], port: number): Promise<Set<string>>;
}
