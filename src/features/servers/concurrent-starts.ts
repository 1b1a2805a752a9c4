import { shareStarts } from './placement/fair-shares.ts';
import type { ServerSteps } from './server-steps.ts';
import type { PlacedServer } from './tables.ts';

/** Servers that start at one time, in turns of their namespaces; some wait for a large build to be unpacked. */
const STARTS_AT_ONCE_MAX = 64;

/** A step that starts a server, or records that it was started. */
export interface Start {
  name: 'start' | 'adopt';
  /** Returns false if the server has ended meanwhile, so what was started is a leftover. */
  work(): Promise<boolean>;
}

interface ConcurrentStartsDependencies {
  steps: ServerSteps;
  /** Called when a start has ended, also if it is to be tried again. */
  onEnded(): void;
  /** Called when a start has left a leftover, because its server has ended meanwhile. */
  onLeftover(): void;
}

/** Starts servers of this machine, some at one time. */
export class ConcurrentStarts {
  readonly #under_way = new Set<PlacedServer>();

  constructor(private readonly dependencies: ConcurrentStartsDependencies) {}

  /** Begins starts, in turns of their namespaces. Returns how many: the others wait until some have ended. */
  begin(starts: ReadonlyMap<PlacedServer, Start>): number {
    const limits = { under_way: [...this.#under_way], starts_max: STARTS_AT_ONCE_MAX };
    const servers = shareStarts([...starts.keys()], limits);
    for (const server of servers) {
      const start = starts.get(server);
      if (start) this.#begin(server, start);
    }
    return servers.length;
  }

  #begin(server: PlacedServer, { name, work }: Start): void {
    const { steps, onEnded, onLeftover } = this.dependencies;
    this.#under_way.add(server);
    let is_wanted = true;
    const start = async () => {
      try {
        is_wanted = await work();
      } finally {
        this.#under_way.delete(server);
      }
    };
    steps.begin(server, name, start, () => (is_wanted ? onEnded() : onLeftover()));
  }
}
