import type { LogStream } from '../../tables.ts';
import type { OutputFiles } from '../output/output-files.ts';
import { EngineUnreachable } from './engine-client.ts';
import { type EngineContainers, isAbsence } from './engine-containers.ts';
import type { EngineFolders } from './engine-folders.ts';
import { followOutput } from './output-follower.ts';

/** Pause before the output of a container that still runs is copied again after that failed or ended. */
const COPY_AGAIN_AFTER_MS = 5_000;

interface OutputCopiesOptions {
  folders: EngineFolders;
  containers: EngineContainers;
  output_files: OutputFiles;
  /** Called when a copy has stopped, usually because its container has ended. */
  onStopped(): void;
  /** Called when the output of a container could not be copied, although the engine answers. */
  onFailed(server_id: string, cause: unknown): void;
}

/** The copying of a container's output. */
interface Following {
  /** Fulfilled when it has ended, or failed. */
  stopped: Promise<void>;
  abort: AbortController;
}

/** Copies the output of containers from the engine. */
export class OutputCopies {
  readonly #following = new Map<string, Following>();

  constructor(private readonly options: OutputCopiesOptions) {}

  /** Copies the output of a container, unless that is under way, or has stopped a moment ago. */
  follow(server_id: string): Following {
    const known = this.#following.get(server_id);
    if (known) return known;
    const abort = new AbortController();
    const one: Following = { abort, stopped: this.#copy(server_id, abort.signal) };
    this.#following.set(server_id, one);
    one.stopped.then(() => {
      this.options.onStopped();
      const forget = () => this.#following.get(server_id) === one && this.#following.delete(server_id);
      setTimeout(forget, COPY_AGAIN_AFTER_MS).unref();
    });
    return one;
  }

  /** Copies what is left of the output of a container that has ended. A copy that began before may have broken off. */
  async finish(server_id: string): Promise<void> {
    await this.#following.get(server_id)?.stopped;
    this.#following.delete(server_id);
    await this.follow(server_id).stopped;
  }

  /** Ends the copying of a container's output. */
  async end(server_id: string): Promise<void> {
    const following = this.#following.get(server_id);
    following?.abort.abort();
    await following?.stopped;
    this.#following.delete(server_id);
  }

  /** Copies the output of a container until it ends. Never throws: a later observation of the server copies it again. */
  async #copy(server_id: string, signal: AbortSignal): Promise<void> {
    const { folders, containers, output_files, onFailed } = this.options;
    const fileOf = (stream: LogStream) => folders.output(server_id, stream);
    try {
      await followOutput({
        files: { std_out: fileOf('std_out'), std_err: fileOf('std_err') },
        onWritten: (stream, reached) => output_files.noteReached(fileOf(stream), reached),
        positions: folders.positions(server_id),
        open: (since_seconds) => containers.openLog(server_id, since_seconds, signal),
      });
    } catch (cause) {
      const is_expected = signal.aborted || cause instanceof EngineUnreachable || isAbsence(cause);
      if (!is_expected) onFailed(server_id, cause);
    }
  }
}
