import { environmentForMoreFetches } from '../config.ts';

/**
 * Starts this program again, in the same process, with more fetches at one time. Bun reads their number from the
 * environment before any of our code runs, and lets a fetch beyond it wait until another one has ended.
 */
export function allowMoreFetches(): void {
  const environment = environmentForMoreFetches();
  if (!environment) return;
  // Inside the executable the script is not a file.
  const [script = '', ...rest] = process.argv.slice(1);
  const args = script.startsWith('/$bunfs/') ? rest : [...process.execArgv, script, ...rest];
  process.execve?.(process.execPath, [process.execPath, ...args], environment);
}
