import { findExhaustedMemory } from '../../../platform/system/cgroups.ts';

interface ServerMemory {
  /** The directories of the server's control group. */
  directories: readonly string[];
  /** MiB; undefined if it is unknown. */
  memory: number | undefined;
  is_in_pod?: boolean;
}

/** Returns why the kernel killed processes of a server for memory; undefined if it killed none. */
export function describeOutOfMemory({ directories, memory, is_in_pod = false }: ServerMemory): string | undefined {
  const whose = findExhaustedMemory(directories, { is_in_pod });
  if (whose === undefined) return undefined;
  if (whose === 'machine') return 'its machine had no memory left';
  return memory === undefined ? 'it exceeded its memory' : `it exceeded its memory of ${memory} MiB`;
}
