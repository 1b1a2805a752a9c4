import { environmentForMoreFetches } from '../config.ts';

/**
 * Restarts this program in the same process with a higher limit of concurrent fetches. Bun reads the limit from the
 * environment before any of our code runs; a fetch above the limit waits until another one ends.
 */
export function allowMoreFetches(): void {
  const environment = environmentForMoreFetches();
  if (!environment) return;
  // Inside the executable the script is not a file.
  const [script = '', ...rest] = process.argv.slice(1);
  const args = script.startsWith('/$bunfs/') ? rest : [...process.execArgv, script, ...rest];
  process.execve?.(process.execPath, [process.execPath, ...args], environment);
}
