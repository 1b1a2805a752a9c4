import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Subprocess } from 'bun';
import { type Api, createApi } from './api.ts';
import { findFreePort, makeDataDirectory } from './service.ts';
import { waitFor } from './wait.ts';

const ROOT = resolve(import.meta.dir, '../..');
const SOURCE = [process.execPath, join(ROOT, 'src/main.ts')];

/** The program as it is shipped, when a run is told where it is. */
export const EXECUTABLE = process.env.MUSTER_TEST_EXECUTABLE;

/** The program as a process of its own, which can be killed. */
export interface Program {
  url: string;
  api: Api;
  pid: number;
  data_directory: string;
  administrator_token: string;
  /** What it has printed so far. */
  output(): string;
  /** Sends a signal and waits for the end. Gives the exit code. */
  stop(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

export interface ProgramOptions {
  /** The command line; the source by default. */
  command?: string[];
  /** By their names in the environment. */
  settings?: Record<string, string>;
}

/** A directory and a port, on which a program can be started again and again. Cleans up after all of them. */
export interface Home extends AsyncDisposable {
  data_directory: string;
  settings: Record<string, string>;
  /** Starts the program and waits until it is ready. Fails with what it printed when it ends instead. */
  start(options?: ProgramOptions): Promise<Program>;
  /** Runs the program until it ends by itself. */
  run(options?: ProgramOptions): Promise<{ exit_code: number; output: string }>;
}

/** The command line of the source, or of the executable. */
export function commandOf(kind: 'source' | 'executable'): string[] {
  return kind === 'source' ? SOURCE : [resolve(EXECUTABLE ?? 'dist/muster')];
}

/** Makes a home. Its programs have an environment of their own: no PATH, and nothing of the tests. */
export async function makeHome(settings: Record<string, string> = {}): Promise<Home> {
  const data_directory = await makeDataDirectory();
  const all_settings = {
    MUSTER_DATA: data_directory,
    MUSTER_PORT: String(findFreePort()),
    MUSTER_LOG: 'warn',
    ...settings,
  };
  const started: Subprocess[] = [];

  function spawn({ command = SOURCE, settings: own = {} }: ProgramOptions) {
    const process = Bun.spawn(command, {
      cwd: data_directory,
      env: { ...all_settings, ...own },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const written: string[] = [];
    const reading = Promise.all([collect(process.stdout, written), collect(process.stderr, written)]);
    started.push(process);
    return { process, written, reading };
  }

  return {
    data_directory,
    settings: all_settings,
    async start(options = {}) {
      const { process, written } = spawn(options);
      const url = `http://127.0.0.1:${options.settings?.MUSTER_PORT ?? all_settings.MUSTER_PORT}`;
      await waitFor(async () => {
        if (process.exitCode !== null) throw new Error(`ended with ${process.exitCode}: ${written.join('')}`);
        return written.join('').includes('Muster 0') && (await answers(`${url}/health/ready`));
      }, 'the program to be ready');
      const token_file = Bun.file(join(data_directory, 'administrator-token'));
      return {
        url,
        api: createApi(url),
        pid: process.pid,
        data_directory,
        administrator_token: (await token_file.text()).trim(),
        output: () => written.join(''),
        async stop(signal) {
          process.kill(signal);
          await process.exited;
          return process.exitCode;
        },
      };
    },
    async run(options = {}) {
      const { process, written, reading } = spawn(options);
      const exit_code = await process.exited;
      await reading;
      return { exit_code, output: written.join('') };
    },
    async [Symbol.asyncDispose]() {
      const last = started.findLast(({ exitCode }) => exitCode !== 1);
      await stopAsPerson(last);
      // Game servers that a killed program left end with the next one that is stopped as a person stops it.
      if (last && last.exitCode !== 0 && existsSync(join(data_directory, 'administrator-token'))) {
        const { process } = spawn({});
        await waitFor(() => answers(`http://127.0.0.1:${all_settings.MUSTER_PORT}/health/ready`), 'a last start');
        await stopAsPerson(process);
      }
      await rm(data_directory, { recursive: true, force: true });
    },
  };
}

async function stopAsPerson(process: Subprocess | undefined): Promise<void> {
  if (!process || process.exitCode !== null || process.signalCode !== null) return;
  process.kill('SIGINT');
  await process.exited;
}

async function collect(stream: ReadableStream<Uint8Array>, written: string[]): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) written.push(decoder.decode(bytes, { stream: true }));
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
