import { LRUCache } from 'lru-cache';
import type { UploadFileRow } from '../uploads/uploads.ts';

/** Bytes that the files in memory may take, as estimated: 100,000 files with short paths. */
const BYTES_MAX = 128 * 1024 ** 2;
/** What a file takes besides its path and content type: an object with ids and digest, in a map. */
const FILE_BYTES = 1_200;

/** A file of a site, under its path. */
export type SiteFile = Omit<UploadFileRow, 'path'>;

/**
 * Creates the cache of the files of sites. It reads those of a site once for all requests that wait for them. Entries stay
 * correct, because a complete site never changes.
 */
export function createSiteFiles(readFiles: (upload_id: string) => Promise<UploadFileRow[]>, bytes_max = BYTES_MAX) {
  const sites = new LRUCache<string, ReadonlyMap<string, SiteFile>>({
    maxSize: bytes_max,
    sizeCalculation: bytesOf,
    // A site that is evicted while it is read still gets its answer.
    ignoreFetchAbort: true,
    fetchMethod: async (upload_id) => new Map((await readFiles(upload_id)).map(({ path, ...file }) => [path, file])),
  });
  return {
    /** Returns the files of a complete site, by path. */
    of: (upload_id: string): Promise<ReadonlyMap<string, SiteFile>> => sites.forceFetch(upload_id),
  };
}

function bytesOf(files: ReadonlyMap<string, SiteFile>): number {
  let bytes = FILE_BYTES;
  for (const [path, { content_type }] of files) bytes += FILE_BYTES + path.length * 2 + (content_type?.length ?? 0);
  return bytes;
}
