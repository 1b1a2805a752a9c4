import type { Events } from '../../platform/events.ts';
import type { Step } from './rules.ts';
import type { PlacedServer } from './tables.ts';

/**
 * The steps under way of this machine's servers. A server has one at a time; a slow one, such as a large build to unpack,
 * delays no other server.
 */
export class ServerSteps {
  readonly #under_way = new Map<string, Promise<void>>();

  constructor(private readonly events: Events) {}

  /** Returns whether a server has a step under way. */
  has(server_id: string): boolean {
    return this.#under_way.has(server_id);
  }

  /** Returns the servers that have a step under way now. */
  serverIds(): ReadonlySet<string> {
    return new Set(this.#under_way.keys());
  }

  /** Begins a step, and calls `onSuccess` after it. One that fails is repeated at the next interval. */
  begin({ server_id }: PlacedServer, name: Step['do'], work: () => Promise<void>, onSuccess = () => {}): void {
    const run = async () => {
      let has_failed = false;
      try {
        await work();
      } catch (cause) {
        has_failed = true;
        this.events.emit({ event: 'server_step_failed', server_id, step: name, cause });
      }
      this.#under_way.delete(server_id);
      if (!has_failed) onSuccess();
    };
    this.#under_way.set(server_id, run());
  }

  /** Adds work that is the step of several servers. It is under way for each of them until `end`. */
  beginTogether(servers: PlacedServer[], work: Promise<void>): void {
    for (const { server_id } of servers) this.#under_way.set(server_id, work);
  }

  /** Ends the step of a server, while the work for others may go on. */
  end({ server_id }: PlacedServer): void {
    this.#under_way.delete(server_id);
  }

  /** Resolves once no step is under way. */
  async allEnded(): Promise<void> {
    // A step may be followed by another one, such as a kill by the step that finishes the server.
    while (this.#under_way.size > 0) await Promise.all(this.#under_way.values());
  }
}
