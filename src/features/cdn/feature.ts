import { availableParallelism } from 'node:os';
import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import type { DiskSpace } from '../../platform/system/disk-space.ts';
import { type Cdn, type CdnDependencies, createCdn } from './cdn.ts';
import { openCompressedFiles } from './compressed-files.ts';

/** Bytes of all compressed files together. */
const COMPRESSED_BYTES_MAX = 1024 ** 3;
/** At most half of the processors compress. */
const COMPRESSED_AT_ONCE = Math.max(1, Math.floor(availableParallelism() / 2));

interface Dependencies extends Omit<CdnDependencies, 'compressed_files'> {
  events: Events;
  /** Directory of compressed files; emptied at each start. */
  directory: string;
  /** The disk of that directory. */
  space: DiskSpace;
}

/** Opens the CDN, which answers for the hosts of sites instead of the API, and therefore has no routes. */
export async function openCdn(dependencies: Dependencies): Promise<Feature<Cdn>> {
  const { directory, space, events } = dependencies;
  const compressed_files = await openCompressedFiles({
    directory,
    space,
    events,
    bytes_max: COMPRESSED_BYTES_MAX,
    at_once: COMPRESSED_AT_ONCE,
  });
  return { api: createCdn({ ...dependencies, compressed_files }) };
}
