import { constants } from 'node:os';
import type { Subprocess } from 'bun';
import { environmentWith } from '../../cli/environment.ts';
import { ownCommand } from '../../cli/muster-command.ts';
import { hasErrorCode } from '../../platform/system/system-errors.ts';
import { EXIT } from '../../terminal/failure.ts';
import { listenForStop, type StopSignal } from '../../terminal/stop-signals.ts';
import { SERVICE_COMMAND } from '../commands.ts';
import { usageOf } from '../usages.ts';
import { createDataDirectory, removeFiles } from './directories.ts';
import { endProcessesOf } from './leftovers.ts';
import type { TestVariables } from './service.ts';

/** Exit codes of shells. */
const [NOT_EXECUTED, NOT_FOUND, SIGNAL_BASE] = [126, 127, 128];
const GAME_NAME_DEFAULT = 'test';
/** Longer than a service takes to end servers that do not end when asked. */
const ENDS_WITHIN_MS = 60_000;

/** Runs a command with a throwaway service. Returns the command's exit code, or 128 plus the number of a signal. */
export async function test(args: string[]): Promise<number> {
  const wanted = readArguments(args);
  if (wanted === 'help') {
    console.log(usageOf('test'));
    return 0;
  }
  if ('problem' in wanted) {
    console.error(`${wanted.problem}\n\n${usageOf('test')}`);
    return EXIT.wrong_use;
  }
  const killing = new AbortController();
  const stopped = listenForStop(() => killing.abort()).then((signal) => ({ signal }));
  await using throwaway = await startThrowaway(await gameName());
  const ready = await Promise.race([throwaway.ready, stopped]);
  if (ready === undefined) return 1;
  if ('signal' in ready) return codeOfSignal(ready.signal);

  const env = environmentWith({ ...ready });
  for (const command of commandsOf(wanted, ready)) {
    const exit_code = await run(command, { env, stopped, signal: killing.signal });
    if (exit_code !== 0) return exit_code;
  }
  return 0;
}

interface TestRun {
  command: string[];
  deploys_first: boolean;
}

/** Returns the run that arguments ask for, that they ask for help, or what is wrong with them. */
function readArguments(args: string[]): TestRun | 'help' | { problem: string } {
  const first = args.findIndex((arg) => !arg.startsWith('-') || arg === '--');
  const options = first < 0 ? args : args.slice(0, first);
  if (options.some((option) => option === '--help' || option === '-h')) return 'help';
  const command = first < 0 ? [] : args.slice(args[first] === '--' ? first + 1 : first);
  const unknown = options.find((option) => option !== '--deploy');
  if (unknown !== undefined) return { problem: `The command "test" has no option "${unknown}".` };
  if (command.length === 0) return { problem: 'Say what to run, for example: muster test -- bun test' };
  return { command, deploys_first: options.length > 0 };
}

interface Command {
  command: string[];
  stdio: ['inherit' | 'ignore', 'inherit' | 2, 'inherit'];
}

/** Returns the commands to run: first the deploy, if it is wanted, with its output on stderr; then the command itself. */
function commandsOf({ command, deploys_first }: TestRun, { MUSTER_GAME }: TestVariables): Command[] {
  const deploying = [...ownCommand(), 'deploy', '--no-check', '--game', MUSTER_GAME];
  return [
    ...(deploys_first ? [{ command: deploying, stdio: ['ignore', 2, 'inherit'] } satisfies Command] : []),
    { command, stdio: ['inherit', 'inherit', 'inherit'] },
  ];
}

/** Returns the name of this folder's game, so that a `muster deploy` in the tests uses the game that they have. */
async function gameName(): Promise<string> {
  const { readProject } = await import('../../cli/project/project-file.ts');
  try {
    return readProject(process.cwd()).game;
  } catch {
    // The folder has no configuration, or a wrong one, which a deploy refuses.
    return GAME_NAME_DEFAULT;
  }
}

interface Running {
  env: Record<string, string | undefined>;
  /** Resolves when the run should end. */
  stopped: Promise<{ signal: StopSignal }>;
  /** Kills the command. */
  signal: AbortSignal;
}

/** Runs a command to its end. Returns the exit code that a shell reports, or that of the signal that ends the run. */
async function run({ command, stdio }: Command, { env, stopped, signal }: Running): Promise<number> {
  let running: Subprocess;
  try {
    running = Bun.spawn(command, { env, stdio, signal, killSignal: 'SIGKILL' });
  } catch (error) {
    const is_missing = hasErrorCode(error, 'ENOENT');
    console.error(`"${command[0]}" ${is_missing ? 'was not found' : `cannot be run: ${error}`}.`);
    return is_missing ? NOT_FOUND : NOT_EXECUTED;
  }
  const stop = await Promise.race([stopped, running.exited]);
  if (typeof stop === 'number') return running.exitCode ?? codeOfSignal(running.signalCode ?? 'SIGKILL');
  passOn(stop.signal, running);
  await running.exited;
  return codeOfSignal(stop.signal);
}

/** Passes a signal on to a command. In a terminal, a SIGINT may be ctrl-C, which reaches the command without that. */
function passOn(signal: StopSignal, running: Subprocess): void {
  if (signal === 'SIGINT' && process.stdin.isTTY) return;
  running.kill(signal);
}

function codeOfSignal(signal: NodeJS.Signals | number): number {
  return SIGNAL_BASE + (typeof signal === 'number' ? signal : constants.signals[signal]);
}

interface Throwaway extends AsyncDisposable {
  /** Undefined if the service does not start; its error is on stderr. */
  ready: Promise<TestVariables | undefined>;
}

/**
 * Starts a throwaway service as a process of its own, in its own session: a ctrl-C in the terminal does not reach it, and it
 * cleans up if this process is killed. Disposing ends it, and cleans up if the service was killed.
 */
async function startThrowaway(game_name: string): Promise<Throwaway> {
  const directory = await createDataDirectory();
  const spawn = () =>
    Bun.spawn([...ownCommand(), SERVICE_COMMAND, directory, game_name], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
      detached: true,
    });
  const service = spawn();
  const ready = readLine(service.stdout).then((line) =>
    line === undefined ? undefined : (JSON.parse(line) as TestVariables),
  );
  return {
    ready,
    async [Symbol.asyncDispose]() {
      if (!(await end(service))) {
        console.error(
          'The service was killed, or did not end in time. Ending the processes that it and the tests left.',
        );
        const variables = await ready;
        if (variables) await endProcessesOf(variables);
        // Like a start after a crash, this finds what still runs.
        await end(spawn());
      }
      await removeFiles(directory);
    },
  };
}

/** Ends a service. Returns whether it has cleaned up. */
async function end(service: Subprocess<'pipe', 'pipe', 'inherit'>): Promise<boolean> {
  service.stdin.end();
  const timer = setTimeout(() => service.kill('SIGKILL'), ENDS_WITHIN_MS);
  await service.exited;
  clearTimeout(timer);
  return service.exitCode !== null;
}

/** Returns the first line of a stream; undefined if it ends before. */
async function readLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    const [line, ...others] = text.split('\n');
    if (others.length > 0) return line;
  }
  return undefined;
}
