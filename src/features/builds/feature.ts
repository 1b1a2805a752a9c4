import { after } from '../../platform/clock.ts';
import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { SignedLinks } from '../../platform/objects/links.ts';
import { type Builds, type BuildsDependencies, createBuilds } from './builds.ts';
import { type BuildFiles, createBuildFiles } from './files.ts';
import { buildFileRoutes, buildRoutes } from './routes.ts';

const REMOVE_UNUSED_EVERY_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** For builds that are kept until the disk is short of space. */
const LONG_AGO = new Date(0);

interface Dependencies extends BuildsDependencies {
  events: Events;
  links: SignedLinks;
  transfers: Transfers;
  /** Days that the files of an unused build stay on this machine. 0 keeps them until the disk is short of space. */
  unpacked_days: number;
  /** Returns the ids of the builds that servers of this machine use, among them all servers that are starting. */
  buildsInUse(): Promise<Set<string>>;
}

/** Opens builds: uploaded game servers. */
export function openBuilds(dependencies: Dependencies): Feature<Builds & BuildFiles> {
  const builds = createBuilds(dependencies);
  const files = createBuildFiles({ ...dependencies, builds });
  return {
    api: { ...builds, ...files },
    routes: [...buildRoutes(builds), ...buildFileRoutes({ ...dependencies, files })],
    startWork: (signal) => [startRemovingUnused(builds, dependencies, signal)],
  };
}

/** Starts the loop that removes the files of unused builds. */
function startRemovingUnused(builds: Builds, dependencies: Dependencies, signal: AbortSignal): Loop {
  const { clock, events, unpacked_days, buildsInUse } = dependencies;
  const loop = startLoop({
    name: 'unused-builds',
    every_ms: REMOVE_UNUSED_EVERY_MS,
    signal,
    events,
    async step() {
      const before = unpacked_days === 0 ? LONG_AGO : after(clock.now(), -unpacked_days * DAY_MS);
      for (const removed of await builds.removeUnused({ before, buildsInUse })) {
        events.emit({ event: 'unused_build_removed', ...removed });
      }
      return 0;
    },
  });
  builds.onShortage(loop.wake);
  return loop;
}
