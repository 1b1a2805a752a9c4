import { resolve } from 'node:path';
import { waitFor } from './wait.ts';

const CTRL_C = '\x03';

/** A program in the foreground of a terminal of its own. */
interface Terminal {
  output(): string;
  /** Presses ctrl-C once: the kernel signals every process of the foreground group. */
  pressCtrlC(): void;
  /** Closes the terminal: the kernel sends SIGHUP to its foreground group. */
  close(): void;
  kill(signal: 'SIGKILL'): void;
  /** Types a text. */
  write(text: string): void;
  /** The exit code; null if a signal ended it. */
  exited: Promise<number | null>;
}

/** Opens a pseudo-terminal with a command, by default in the project's root. */
export function openTerminal(
  command: string[],
  environment: Record<string, string>,
  { cwd = resolve(import.meta.dir, '../..'), cols = 200 } = {},
): Terminal {
  const decoder = new TextDecoder();
  let output = '';
  const child = Bun.spawn(command, {
    cwd,
    env: environment,
    terminal: {
      cols,
      rows: 50,
      data: (_, bytes) => {
        output += decoder.decode(bytes, { stream: true });
      },
    },
  });
  return {
    output: () => output,
    pressCtrlC: () => {
      child.terminal?.write(CTRL_C);
    },
    close: () => child.terminal?.close(),
    kill: (signal) => child.kill(signal),
    write: (text) => {
      child.terminal?.write(text);
    },
    exited: child.exited.then(() => child.exitCode),
  };
}

/** The command with which the README starts, or the part of it that this machine can run. */
export async function readmeStartCommand(): Promise<string[]> {
  const readme = await Bun.file(resolve(import.meta.dir, '../../README.md')).text();
  const line = /^npx .* run start$/m.exec(readme)?.[0];
  if (line === undefined) throw new Error('the README names no command that ends in "run start"');
  if (Bun.which('npx')) return line.split(' ');
  console.warn('npx is not on PATH: tried "bun run start" instead of the command of the README');
  return [process.execPath, 'run', 'start'];
}

/** Waits until a program has printed something. */
export async function waitForOutput({ output }: Pick<Terminal, 'output'>, text: string): Promise<void> {
  await waitFor(
    () => output().includes(text),
    () => `the program to print "${text}", which printed:\n${output()}`,
  );
}
