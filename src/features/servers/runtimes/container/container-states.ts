import { existsSync, readFileSync } from 'node:fs';
import type { ProcessIdentity } from '../../../../platform/system/processes.ts';
import { describeUnexpectedFailure } from '../../start-failure.ts';
import { mayBeOutOfMemory, readExitStatus } from '../linux/exit-status.ts';
import { type Accepted, type Observation, SETTING_UP } from '../runtime.ts';
import { describeMemoryKill } from './container-cgroups.ts';
import type { ContainerFolders } from './container-folders.ts';
import { writeContainerIdentity } from './container-identity.ts';

/** Programs may write a line for each file. */
const SET_UP_CHARACTERS_MAX = 1_000;
const NETWORK_ENDED = 'the network of its container ended unexpectedly';

interface ContainerStatesOptions {
  folders: ContainerFolders;
  /** The name or address at which players reach this machine. */
  host: string;
  /** Reports why a container could not be set up: once for each, unless it is noted as reported. */
  onStartFailed?: ((server_id: string, cause: unknown) => void) | undefined;
}

/** The states of containers, as the files in their folders tell them. */
export class ContainerStates {
  /** The servers whose failed set-up was reported. */
  readonly #reported = new Set<string>();

  constructor(private readonly options: ContainerStatesOptions) {}

  /** Returns the state of a container whose shim runs. */
  stateOf(server_id: string, shim: ProcessIdentity): Accepted {
    const identity = writeContainerIdentity(shim);
    return this.readFirstPid(server_id) === undefined
      ? { is: 'pending', identity, reason: SETTING_UP }
      : { is: 'running', identity, host: this.options.host };
  }

  /** Returns how a container ended, whose shim has ended. */
  endOf(server_id: string): Observation {
    const { folders, onStartFailed } = this.options;
    if (existsSync(folders.setUpFailed(server_id))) {
      const cause = this.setUpFailureOf(server_id);
      if (!this.#reported.has(server_id)) onStartFailed?.(server_id, cause);
      this.noteReported(server_id);
      return { is: 'ended', exit_code: null, exit_signal: null, reason: describeUnexpectedFailure(cause) };
    }
    const status = readExitStatus(folders.exit(server_id));
    // When memory runs out, the kernel kills one process. Memory is the reason for the end only if that was the first
    // process.
    if (!mayBeOutOfMemory(status)) return { is: 'ended', ...status };
    if (existsSync(folders.networkEnded(server_id))) return { is: 'ended', ...status, reason: NETWORK_ENDED };
    const reason = describeMemoryKill(server_id, readNumber(folders.memory(server_id)));
    return { is: 'ended', ...status, ...(reason !== undefined && { reason }) };
  }

  /** Returns the process id of a container's first process; undefined until it runs. */
  readFirstPid(server_id: string): number | undefined {
    return readNumber(this.options.folders.init(server_id));
  }

  /** Returns why a container could not be set up. It names files of the machine, so it is not for the developer. */
  setUpFailureOf(server_id: string): Error {
    const { folders } = this.options;
    const files = [folders.setupLog(server_id), folders.output(server_id, 'std_err')];
    const reason = files.map((file) => readFileSync(file, 'utf8')).join('');
    const failure = new Error(`the container could not be set up: ${reason.trim().slice(0, SET_UP_CHARACTERS_MAX)}`);
    // The programs of the set-up say it in these words; such a start is tried again.
    return reason.includes('No space left on device') ? Object.assign(failure, { code: 'ENOSPC' }) : failure;
  }

  /** Notes that the failed set-up of a container was reported. */
  noteReported(server_id: string): void {
    this.#reported.add(server_id);
  }

  /** Forgets a container that is removed. */
  forget(server_id: string): void {
    this.#reported.delete(server_id);
  }
}

/** Reads a file with a number; undefined if it does not exist or is empty. */
function readNumber(file: string): number | undefined {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text === '' ? undefined : Number(text);
}
