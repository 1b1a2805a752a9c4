import { DEV_SERVICE_COMMAND } from '../cli/muster-command.ts';
import { whyNoServiceHere } from '../cli/no-service-here.ts';
import { POD_COMMANDS } from '../features/servers/runtimes/kubernetes/pod-names.ts';
import { EXIT } from '../terminal/failure.ts';
import { type CommandOutput, createOutput } from './command-output.ts';

/** Runs the throwaway service of `muster test`, and is used by it only. */
export const SERVICE_COMMAND = 'test-service';

/** Takes the arguments without `--json`. Returns the exit code. */
type Command = (args: string[], output: CommandOutput) => Promise<number>;

/** The commands of this machine, by name. Each is loaded when it runs. */
const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', async () => (await import('./serve.ts')).serve],
  ['migrate', async () => (await import('./migrate.ts')).migrate],
  ['backup', async () => (await import('./backup.ts')).backup],
  ['restore', async () => (await import('./restore.ts')).restore],
  ['upgrade', async () => (await import('./upgrade.ts')).upgrade],
  ['openapi', async () => (await import('./openapi.ts')).openapi],
  ['test', async () => (await import('./test/run.ts')).test],
  [SERVICE_COMMAND, async () => (await import('./test/service.ts')).serveThrowaway],
  [DEV_SERVICE_COMMAND, async () => (await import('./serve.ts')).serveDev],
  [POD_COMMANDS.build, async () => (await import('./pod.ts')).fetchPodBuild],
  [POD_COMMANDS.server, async () => (await import('./pod.ts')).runPodServer],
  ['version', async () => (await import('./version.ts')).version],
  ['help', async () => help],
]);
/** Commands that only other commands start. */
const HIDDEN = new Set([SERVICE_COMMAND, DEV_SERVICE_COMMAND, ...Object.values(POD_COMMANDS)]);
/** The names that the help knows, and that are suggested for a misspelt command. */
const NAMES = [...COMMANDS.keys()].filter((name) => !HIDDEN.has(name));
/** Commands that read arguments themselves. */
const READ_THEIR_ARGUMENTS = new Set(['help', 'test', 'upgrade', SERVICE_COMMAND]);
/** The help of commands that have one of their own. Other systems have it too, but cannot load the command. */
const OWN_HELP = new Map<string, () => Promise<string>>([
  ['test', async () => (await import('./test/usage.ts')).USAGE],
  ['upgrade', async () => (await import('./upgrade-usage.ts')).USAGE],
]);
/** Commands that take the name of a file. */
const TAKE_A_FILE = new Set(['backup', 'restore']);
/** Commands that write an object with `--json`. */
const WITH_JSON = new Set(['migrate', 'backup', 'restore', 'upgrade', 'version']);
/** Commands that run on every system. */
const EVERYWHERE = new Set(['version', 'help']);
const FLAGS = new Map(Object.entries({ '--help': 'help', '-h': 'help', '--version': 'version', '-v': 'version' }));

/** Runs the command of the command line, `serve` by default. Returns the exit code. */
export async function runCommand([name = 'serve', ...rest]: string[]): Promise<number> {
  const wanted = FLAGS.get(name) ?? name;
  const load = COMMANDS.get(wanted);
  if (!load) return await (await import('../cli/program.ts')).runClient([name, ...rest], NAMES);
  const output = createOutput(WITH_JSON.has(wanted) && rest.includes('--json'));
  const args = output.is_json ? rest.filter((one) => one !== '--json') : rest;
  if (!READ_THEIR_ARGUMENTS.has(wanted)) {
    if (asksForHelp(args)) return await help([]);
    const problem = problemOf(wanted, args);
    if (problem !== undefined) {
      const advice = 'settings come from the environment; "muster --help" lists all commands and settings.';
      return output.fail(`${problem}: ${advice}`, EXIT.wrong_use);
    }
  }
  const loadHelp = asksForHelp(args.slice(0, 1)) ? OWN_HELP.get(wanted) : undefined;
  if (loadHelp) {
    console.log(await loadHelp());
    return 0;
  }
  const why_not = EVERYWHERE.has(wanted) ? undefined : whyNoServiceHere(wanted);
  if (why_not !== undefined) return output.fail(why_not, EXIT.failed);
  const command = await load();
  try {
    return await command(args, output);
  } catch (error) {
    const { ServiceError, StartError } = await import('../platform/errors.ts');
    if (!(error instanceof StartError || error instanceof ServiceError)) throw error;
    return output.fail(error.message, EXIT.failed);
  }
}

function asksForHelp(args: string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/** Prints the help of a command, or of all. */
async function help([name, ...rest]: string[]): Promise<number> {
  if (name !== undefined && OWN_HELP.has(name)) return await runCommand([name, '--help']);
  return await (await import('./help.ts')).help(name === undefined ? [] : [name, ...rest], NAMES);
}

/** Returns what is wrong with the arguments of a command that takes a file or nothing; undefined if they are right. */
function problemOf(command: string, [first, ...more]: string[]): string | undefined {
  if (!TAKE_A_FILE.has(command)) {
    return first === undefined ? undefined : `The command "${command}" takes no arguments, but got "${first}"`;
  }
  const is_file = first !== undefined && first !== '' && !first.startsWith('-');
  return is_file && more.length === 0 ? undefined : `Write "muster ${command} FILE"`;
}
