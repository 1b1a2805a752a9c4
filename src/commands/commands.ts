import { DEV_SERVICE_COMMAND } from '../cli/muster-command.ts';
import { whyNoServiceHere } from '../cli/no-service-here.ts';
import { POD_COMMANDS } from '../features/servers/runtimes/kubernetes/pod-names.ts';
import { EXIT, Failure } from '../terminal/failure.ts';
import { type CommandOutput, createOutput } from './command-output.ts';

/** Runs the throwaway service of `muster test`, and is used by it only. */
export const SERVICE_COMMAND = 'test-service';

/** Takes the arguments without `--json`. Returns the exit code. */
type Run = (args: string[], output: CommandOutput) => Promise<number>;

/** A command of this machine. */
interface Command {
  /** Loads the code of the command, which other systems may not have. */
  load: () => Promise<Run>;
  /** Its arguments: none by default, the name of a file, or those that the command reads itself. */
  arguments?: 'file' | 'own';
  /** Whether it writes an object with `--json`. */
  has_json?: boolean;
  /** Whether it runs on every system. */
  runs_everywhere?: boolean;
  /** Whether only other commands start it, so that no help names it. */
  is_hidden?: boolean;
}

const COMMANDS: Record<string, Command> = {
  serve: { load: async () => (await import('./serve.ts')).serve },
  migrate: { load: async () => (await import('./migrate.ts')).migrate, has_json: true },
  backup: { load: async () => (await import('./backup.ts')).backup, arguments: 'file', has_json: true },
  restore: { load: async () => (await import('./restore.ts')).restore, arguments: 'file', has_json: true },
  upgrade: {
    load: async () => (await import('./upgrade.ts')).upgrade,
    arguments: 'own',
    has_json: true,
  },
  openapi: { load: async () => (await import('./openapi.ts')).openapi },
  test: {
    load: async () => (await import('./test/run.ts')).test,
    arguments: 'own',
  },
  version: { load: async () => (await import('./version.ts')).version, has_json: true, runs_everywhere: true },
  help: { load: async () => help, arguments: 'own', runs_everywhere: true },
  [SERVICE_COMMAND]: {
    load: async () => (await import('./test/service.ts')).serveThrowaway,
    arguments: 'own',
    is_hidden: true,
  },
  [DEV_SERVICE_COMMAND]: { load: async () => (await import('./serve.ts')).serveDev, is_hidden: true },
  [POD_COMMANDS.build]: { load: async () => (await import('./pod.ts')).fetchPodBuild, is_hidden: true },
  [POD_COMMANDS.server]: { load: async () => (await import('./pod.ts')).runPodServer, is_hidden: true },
};
const FLAGS: Record<string, string> = { '--help': 'help', '-h': 'help', '--version': 'version', '-v': 'version' };

/** Runs the command of the command line, `serve` by default. Returns the exit code. */
export async function runCommand([given = 'serve', ...rest]: string[]): Promise<number> {
  const name = FLAGS[given] ?? given;
  const command = findCommand(name);
  if (!command) return await (await import('../cli/program.ts')).runClient([given, ...rest], listNames());
  const { has_json = false, runs_everywhere = false } = command;
  const output = createOutput(has_json && rest.includes('--json'));
  const args = output.is_json ? rest.filter((arg) => arg !== '--json') : rest;
  if (asksForHelp(command, args)) return await help([name]);
  const problem = problemOf(name, command, args);
  if (problem !== undefined) return output.fail(problem, EXIT.wrong_use);
  const why_not = runs_everywhere ? undefined : whyNoServiceHere(name);
  if (why_not !== undefined) return output.fail(why_not, EXIT.failed);
  const run = await command.load();
  try {
    return await run(args, output);
  } catch (error) {
    const { ServiceError, StartError } = await import('../platform/errors.ts');
    if (!(error instanceof StartError || error instanceof ServiceError || error instanceof Failure)) throw error;
    return output.fail(error.message, EXIT.failed);
  }
}

function findCommand(name: string): Command | undefined {
  return Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}

/** Returns the names that the help has, and that are suggested for a misspelt command. */
function listNames(): string[] {
  return Object.keys(COMMANDS).filter((name) => !COMMANDS[name]?.is_hidden);
}

/**
 * Returns whether arguments ask for help. If the command reads its arguments itself, only the first one can: the others may
 * belong to the program that it runs.
 */
function asksForHelp(command: Command, args: string[]): boolean {
  const read = command.arguments === 'own' ? args.slice(0, 1) : args;
  return read.includes('--help') || read.includes('-h');
}

/** Prints the help of a command, or of all. */
async function help([name, ...rest]: string[]): Promise<number> {
  return await (await import('./help.ts')).help(name === undefined ? [] : [name, ...rest], listNames());
}

/** Returns what is wrong with the arguments of a command that takes a file or nothing; undefined if they are right. */
function problemOf(name: string, command: Command, [first, ...more]: string[]): string | undefined {
  if (command.arguments === 'own') return undefined;
  if (command.arguments === 'file') {
    const is_file = first !== undefined && first !== '' && !first.startsWith('-');
    return is_file && more.length === 0 ? undefined : `Name one file: muster ${name} FILE`;
  }
  if (first === undefined) return undefined;
  const advice = 'settings come from the environment; "muster --help" lists all commands and settings.';
  return `The command "${name}" takes no arguments, but got "${first}": ${advice}`;
}
