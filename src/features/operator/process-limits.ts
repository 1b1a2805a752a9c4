import { totalmem } from 'node:os';
import { countInUse } from '../../platform/http/ports/connections-in-use.ts';
import { countDescriptors, readDescriptorsMax } from '../../platform/http/ports/open-connections.ts';
import type { UsedLimit } from './wire.ts';

/**
 * Creates the function that reads how much of the limits of this process is used. It works without a free descriptor,
 * when operators need it most.
 */
export function createOwnLimits(): () => UsedLimit[] {
  const descriptors_max = readDescriptorsMax();
  return () => {
    const memory_bytes = readMemory();
    return [
      { name: 'requests', used: countInUse().requests },
      { name: 'file_descriptors', used: orUndefined(countDescriptors) ?? descriptors_max, max: descriptors_max },
      ...(memory_bytes === undefined
        ? []
        : [{ name: 'memory_bytes' as const, used: memory_bytes, max: process.constrainedMemory() || totalmem() }]),
    ];
  };
}

/** Returns the resident memory of this process in bytes; undefined without a free descriptor. */
export function readMemory(): number | undefined {
  return orUndefined(() => process.memoryUsage.rss());
}

/** Returns undefined if the reading fails. Bun's failure to read its memory has no code. */
function orUndefined(read: () => number): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
