import type { ProcessIdentity } from '../../../platform/processes.ts';
import type { BuildKind, UnpackedBuild } from '../../builds/builds.ts';
import type { LogStream } from '../tables.ts';

/** Everything a runtime needs to start a server. */
export interface StartOrder {
  server_id: string;
  build: UnpackedBuild;
  /** Added to the build's own command. */
  arguments: string[];
  /** The whole environment; nothing else reaches the server. */
  environment: Record<string, string>;
  /** The user to run as; undefined where we are not root. */
  user_id: number | undefined;
}

/** What is kept of a server to find it again. */
export interface ServerHandle {
  server_id: string;
  process: ProcessIdentity | undefined;
  user_id: number | undefined;
}

/** What a runtime sees of a server. */
export type Observation =
  /** Nothing of it: it was never started. */
  | { is: 'absent' }
  | { is: 'running'; process: ProcessIdentity }
  /** It ran and does not any more. Both are null when how it ended was never seen. */
  | { is: 'ended'; exit_code: number | null; exit_signal: string | null };

/** How servers run on a machine. Each step may be taken twice. One test suite runs on every runtime. */
export interface Runtime {
  readonly kinds: readonly BuildKind[];
  /** Starts the server, unless it has been started; throws when that cannot be, with the reason in words. */
  start(order: StartOrder): Promise<ProcessIdentity>;
  /** What is seen of each server, by its id. */
  observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>>;
  /** Asks it to end. Returns whether it was asked: one that is still being started could not hear it. */
  stop(server: ServerHandle): boolean;
  /** Ends servers and everything that they started. Gives the ids of those of which no process is left. */
  kill(servers: readonly ServerHandle[]): Promise<Set<string>>;
  /** Processor time that each server has used so far, its whole tree, in milliseconds; of those that have processes. */
  readUsage(servers: readonly ServerHandle[]): Promise<Map<string, number>>;
  /** The ids of those servers that have a TCP port of this machine, listening or connected, on any address. */
  findHolders(servers: readonly ServerHandle[], port: number): Promise<Set<string>>;
  /** Where its output lies: a file that grows, whose beginning may be given back to the disk. */
  outputFile(server_id: string, stream: LogStream): string;
  /** Removes the files of a server of which no process is left. */
  removeFiles(server_id: string): Promise<void>;
  /** The servers of which something may be left. */
  list(): Promise<ServerHandle[]>;
  /** Calls when a server may have ended. */
  onChange(tell: () => void): void;
}
