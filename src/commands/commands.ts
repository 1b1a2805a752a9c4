import { whyNoService } from '../cli/platform.ts';
import { POD_COMMANDS } from '../features/servers/runtimes/kubernetes/pod-names.ts';

/** Runs the throwaway service of `muster test`, and is used by it only. */
export const SERVICE_COMMAND = 'test-service';

/** The commands of this machine, by name. Each is loaded when it runs, and returns the exit code. */
const COMMANDS = new Map<string, () => Promise<(args: string[]) => Promise<number>>>([
  ['serve', async () => (await import('./serve.ts')).serve],
  ['migrate', async () => (await import('./migrate.ts')).migrate],
  ['backup', async () => (await import('./backup.ts')).backup],
  ['restore', async () => (await import('./restore.ts')).restore],
  ['upgrade', async () => (await import('./upgrade.ts')).upgrade],
  ['openapi', async () => (await import('./openapi.ts')).openapi],
  ['test', async () => (await import('./test/run.ts')).test],
  [SERVICE_COMMAND, async () => (await import('./test/service.ts')).serveThrowaway],
  [POD_COMMANDS.build, async () => (await import('./pod.ts')).fetchPodBuild],
  [POD_COMMANDS.server, async () => (await import('./pod.ts')).runPodServer],
  ['version', async () => (await import('./version.ts')).version],
  ['help', async () => help],
]);
/** Commands that only other commands start. */
const HIDDEN = new Set([SERVICE_COMMAND, ...Object.values(POD_COMMANDS)]);
/** The names that are suggested. */
const NAMES = [...COMMANDS.keys()].filter((name) => !HIDDEN.has(name));
/** Commands that read arguments themselves. */
const WITH_ARGUMENTS = new Set(['help', 'test', 'upgrade', SERVICE_COMMAND]);
/** Commands that take the name of a file. */
const OF_FILE = new Set(['backup', 'restore']);
/** Commands that run on every system. */
const EVERYWHERE = new Set(['version', 'help']);
const REFUSED_EXIT_CODE = 1;
const WRONG_USE_EXIT_CODE = 2;
const FLAGS = new Map(Object.entries({ '--help': 'help', '-h': 'help', '--version': 'version', '-v': 'version' }));

/** Runs the command of the command line, `serve` by default. Returns the exit code. */
export async function runCommand([name = 'serve', ...rest]: string[]): Promise<number> {
  const wanted = FLAGS.get(name) ?? name;
  const load = COMMANDS.get(wanted);
  if (!load) return await (await import('../cli/program.ts')).runClient([name, ...rest], NAMES);
  if (!WITH_ARGUMENTS.has(wanted)) {
    if (rest.includes('--help') || rest.includes('-h')) return await help([]);
    const problem = problemOf(wanted, rest);
    if (problem !== undefined) {
      console.error(`${problem}: settings come from the environment; "muster --help" lists all commands and settings.`);
      return WRONG_USE_EXIT_CODE;
    }
  }
  const why_not = EVERYWHERE.has(wanted) ? undefined : whyNoService(wanted);
  if (why_not !== undefined) {
    console.error(why_not);
    return REFUSED_EXIT_CODE;
  }
  const command = await load();
  try {
    return await command(rest);
  } catch (error) {
    const { StartError } = await import('../platform/errors.ts');
    if (!(error instanceof StartError)) throw error;
    console.error(error.message);
    return REFUSED_EXIT_CODE;
  }
}

/** Prints the help of a command, or of all. */
async function help([name, ...rest]: string[]): Promise<number> {
  // These have a help of their own.
  if (name === 'test' || name === 'upgrade') return await runCommand([name, '--help']);
  return await (await import('./help.ts')).help(name === undefined ? [] : [name, ...rest], NAMES);
}

/** Returns what is wrong with the arguments of a command that takes a file or nothing; undefined if they are right. */
function problemOf(command: string, [first, ...more]: string[]): string | undefined {
  if (!OF_FILE.has(command)) {
    return first === undefined ? undefined : `The command "${command}" takes no arguments, but got "${first}"`;
  }
  const is_file = first !== undefined && first !== '' && !first.startsWith('-');
  return is_file && more.length === 0 ? undefined : `Write "muster ${command} FILE"`;
}
