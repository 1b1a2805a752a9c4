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
  observe(server: ServerHandle): Observation;
  /** Asks it to end. */
  stop(server: ServerHandle): void;
  /** Ends it and everything that it started. */
  kill(server: ServerHandle): Promise<void>;
  /** Where its output lies: a file that grows, whose beginning may be given back to the disk. */
  outputFile(server_id: string, stream: LogStream): string;
  /** Makes sure that nothing of it is left: no process, no file. */
  remove(server: ServerHandle): Promise<void>;
  /** The servers of which something may be left. */
  list(): Promise<string[]>;
  /** Calls when a server may have ended. */
  onChange(tell: () => void): void;
}
