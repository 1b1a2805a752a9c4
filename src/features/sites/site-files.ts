import { LRUCache } from 'lru-cache';
import type { UploadFileRow } from '../uploads/uploads.ts';

/** Files in memory; 10,000 take about 2 MB. */
const FILES_MAX = 640_000;

/** A file of a site, under its path. */
export type SiteFile = Omit<UploadFileRow, 'path'>;

/**
 * Creates the cache of the files of sites. It reads those of a site once for all requests that wait for them. Entries stay
 * correct, because a complete site never changes.
 */
export function createSiteFiles(readFiles: (upload_id: string) => Promise<UploadFileRow[]>, files_max = FILES_MAX) {
  const sites = new LRUCache<string, ReadonlyMap<string, SiteFile>>({
    maxSize: files_max,
    sizeCalculation: (files) => Math.max(files.size, 1),
    // A site that is evicted while it is read still gets its answer.
    ignoreFetchAbort: true,
    fetchMethod: async (upload_id) => new Map((await readFiles(upload_id)).map(({ path, ...file }) => [path, file])),
  });
  return {
    /** Returns the files of a complete site, by path. */
    of: (upload_id: string): Promise<ReadonlyMap<string, SiteFile>> => sites.forceFetch(upload_id),
  };
}
