import { relative, resolve, sep } from 'node:path';
import { watch } from 'chokidar';
import { environment } from '../environment.ts';

/** Editors write a file in several steps; these are one change. */
const QUIET_MS = 80;
const IGNORED = /(^|\/)(\.git|muster-data|\.DS_Store)(\/|$)/;

export interface WatchedFiles extends AsyncDisposable {
  /** Watches one more path. Repeating it is harmless. */
  add(path: string): void;
  /**
   * Returns the paths that changed since the last call, from the current directory; waits until there are some. Returns
   * undefined once the signal is aborted.
   */
  next(signal: AbortSignal): Promise<string[] | undefined>;
}

/** Watches files and directories. From when it resolves on, every change is noticed. */
export async function watchFiles(paths: string[]): Promise<WatchedFiles> {
  const changed = new Set<string>();
  let wake = Promise.withResolvers<void>();
  const watcher = watch(paths, { ignoreInitial: true, ignored: isIgnored });
  watcher.on('all', (_, path) => {
    changed.add(relative('.', path));
    wake.resolve();
  });
  await new Promise<void>((resolve) => watcher.once('ready', () => resolve()));
  return {
    add: (path) => void watcher.add(path),
    async next(signal) {
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      if (changed.size === 0 && !signal.aborted) await Promise.race([wake.promise, aborted]);
      for (let before = -1; before !== changed.size && !signal.aborted; ) {
        before = changed.size;
        await Bun.sleep(QUIET_MS);
      }
      if (signal.aborted) return undefined;
      const paths = [...changed];
      changed.clear();
      wake = Promise.withResolvers();
      return paths;
    },
    [Symbol.asyncDispose]: () => watcher.close(),
  };
}

/**
 * Returns whether to ignore a path: its name is never deployed, or it is in the data directory, where the service writes all
 * the time.
 */
function isIgnored(path: string): boolean {
  const data_directory = `${resolve(environment.data_directory)}${sep}`;
  return IGNORED.test(relative('.', path)) || `${resolve(path)}${sep}`.startsWith(data_directory);
}
