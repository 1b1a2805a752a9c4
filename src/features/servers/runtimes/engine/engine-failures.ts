import { ServiceError } from '../../../../platform/errors.ts';
import { describeStartFailure } from '../../start-failure.ts';
import { EngineUnreachable } from './engine-client.ts';
import type { EngineFolders, Mark } from './engine-folders.ts';
import type { EngineStates } from './engine-states.ts';

export type EngineStep = 'start' | 'collect' | 'measure' | 'kill';

/**
 * Reports why something could not be done for a server, if that is not for its developer. Of each step but the start, only
 * the first failure of a server is reported.
 */
export type OnEngineFailure = (server_id: string, step: EngineStep, cause: unknown) => void;

const ENGINE_AWAY = 'the container engine of the machine did not answer';

interface EngineFailuresDependencies {
  folders: EngineFolders;
  states: Pick<EngineStates, 'setFailure'>;
  onFailed: OnEngineFailure | undefined;
}

/** What could not be done for servers: for their developers in their state, for the operator as reports. */
export class EngineFailures {
  /** The steps whose failure was reported, by server. */
  readonly #reported = new Map<string, Set<EngineStep>>();

  constructor(private readonly dependencies: EngineFailuresDependencies) {}

  /** Reports the first failure of a step of a server. */
  reportOnce(server_id: string, step: EngineStep, cause: unknown): void {
    const steps = this.#reported.get(server_id) ?? new Set();
    this.#reported.set(server_id, steps);
    if (steps.has(step)) return;
    steps.add(step);
    this.dependencies.onFailed?.(server_id, step, cause);
  }

  /** Marks a server. On a full disk the mark may fail, which must stop neither a start nor a kill. */
  mark(server_id: string, name: Mark, step: EngineStep, text?: string): void {
    try {
      this.dependencies.folders.marks.set(server_id, name, text);
    } catch (cause) {
      this.reportOnce(server_id, step, cause);
    }
  }

  /** Records that a container could not be set up, and why. */
  noteFailedSetUp(server_id: string, reason: string): void {
    const { folders, states } = this.dependencies;
    if (!folders.has(server_id)) return;
    states.setFailure(server_id, reason);
    this.mark(server_id, 'failed', 'start', reason);
  }

  /** Records a start that failed after `start` had returned. */
  recordFailedStart(server_id: string, cause: unknown): void {
    if (!(cause instanceof ServiceError)) this.dependencies.onFailed?.(server_id, 'start', cause);
    // The reason is for the developer, who must not learn where the engine or files of the machine are.
    const reason = cause instanceof EngineUnreachable ? ENGINE_AWAY : describeStartFailure(cause);
    this.noteFailedSetUp(server_id, reason);
  }

  forget(server_id: string): void {
    this.#reported.delete(server_id);
  }
}
