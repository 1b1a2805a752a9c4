import { after } from '../../platform/clock.ts';
import type { DataDirectory } from '../../platform/data-directory.ts';
import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { SignedLinks } from '../../platform/objects/links.ts';
import { DAY_MS } from '../../platform/units.ts';
import { type Builds, type BuildsDependencies, createBuilds } from './builds.ts';
import { openBaseImage } from './containers/base-image.ts';
import { type BuildFiles, createBuildFiles } from './files.ts';
import { buildFileRoutes, buildRoutes } from './routes.ts';
import type { RemoveUnusedOptions } from './unused-builds.ts';

const REMOVE_UNUSED_EVERY_MS = 60_000;
/** For builds that are kept until the disk is short of space. */
const LONG_AGO = new Date(0);

interface Dependencies extends Omit<BuildsDependencies, 'directory' | 'base_image'> {
  events: Events;
  data: Pick<DataDirectory, 'folder'>;
  links: SignedLinks;
  transfers: Transfers;
  /** Days that the files of an unused build stay on this machine. 0 keeps them until the disk is short of space. */
  unpacked_days: number;
  /** The file of the image on which archives run in containers; undefined if they do not. */
  container_base_file: string | undefined;
  buildsInUse: RemoveUnusedOptions['buildsInUse'];
}

/** Opens builds: uploaded game servers. Throws StartError for a base image that cannot be used. */
export async function openBuilds(dependencies: Dependencies): Promise<Feature<Builds & BuildFiles>> {
  const { data, available, container_base_file: file } = dependencies;
  const directory = data.folder('builds');
  const has_base_image = file !== undefined && available.kinds.includes('oci_bundle');
  const base_image = has_base_image ? await openBaseImage({ file, directory }) : undefined;
  const builds = createBuilds({ ...dependencies, directory, base_image });
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
  builds.setShortageListener(loop.wake);
  return loop;
}
