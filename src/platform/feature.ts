import type { Route } from './http/route.ts';

/** A feature of the service. `composition.ts` opens all of them. */
export interface Feature<Api = unknown> {
  /** The public API, which other features may call. */
  api: Api;
  routes?: Route[];
  /** Starts the background work of the feature. The signal ends it. */
  startWork?(signal: AbortSignal): Work[];
}

/** Background work in progress. */
export interface Work {
  /** Resolves when its last step has ended. */
  stopped: Promise<void>;
}
