import { totalmem } from 'node:os';
import { countInUse } from '../../platform/http/connections-in-use.ts';
import { countDescriptors, readDescriptorsMax } from '../../platform/http/open-connections.ts';
import type { UsedLimit } from './wire.ts';

/**
 * Creates the reading of what is used of the limits of the process as a whole. An operator needs it most while no descriptor
 * is free, when no file can be read.
 */
export function createOwnLimits(): () => UsedLimit[] {
  const descriptors_max = readDescriptorsMax();
  return () => {
    const memory_bytes = orUndefined(() => process.memoryUsage.rss());
    return [
      { name: 'requests', used: countInUse().requests },
      { name: 'file_descriptors', used: orUndefined(countDescriptors) ?? descriptors_max, max: descriptors_max },
      ...(memory_bytes === undefined
        ? []
        : [{ name: 'memory_bytes' as const, used: memory_bytes, max: process.constrainedMemory() || totalmem() }]),
    ];
  };
}

/** Returns undefined if the reading fails. Bun's failure to read its memory has no code. */
function orUndefined(read: () => number): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
