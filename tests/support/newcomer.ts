import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { COMMAND, type Home, type Program } from './program.ts';

const ROOT = resolve(import.meta.dir, '../..');

/** A newcomer's own folder with the command, in which the commands of a page run against a program. */
export interface Newcomer extends AsyncDisposable {
  /** The directory for programs, which has the command. */
  programs: string;
  /** Returns the shell blocks of a page's first game, run against the program. */
  readSteps(page: string): Promise<string[]>;
  /** Runs commands in bash until one fails. */
  run(script: string): Promise<{ exit_code: number; output: string; errors: string }>;
}

/** Makes the folder of a newcomer who uses a program. */
export async function openNewcomer(
  { data_directory }: Pick<Home, 'data_directory'>,
  { url }: Pick<Program, 'url'>,
): Promise<Newcomer> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-user-'));
  const programs = join(folder, 'bin');
  await Bun.write(join(programs, 'muster'), `#!/bin/sh\nexec ${COMMAND.join(' ')} "$@"\n`);
  await chmod(join(programs, 'muster'), 0o755);
  return {
    programs,
    async readSteps(page) {
      const text = await Bun.file(resolve(ROOT, page)).text();
      const [, after = ''] = text.split(/^#+ Your first game.*$/m);
      const [section = ''] = after.split('\n## ');
      const steps = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, step = '']) =>
        step.replace('http://127.0.0.1:8080', url).replace('muster-data/', `${data_directory}/`),
      );
      if (steps.length <= 5) throw new Error(`${page} has no first game`);
      return steps;
    },
    async run(script) {
      const { PATH = '' } = process.env;
      const env = { PATH, HOME: folder, MUSTER_PORT: new URL(url).port, MUSTER_DATA: data_directory };
      const child = Bun.spawn(['bash', '-e', '-c', script], { cwd: ROOT, env, stdout: 'pipe', stderr: 'pipe' });
      const [exit_code, output, errors] = await Promise.all([
        child.exited,
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return { exit_code, output, errors };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The line of the README that makes the executable. The run has one, or the source. */
const BUILD = /^npx .* run build$/m;

/** Returns the commands of "Your first game" in the README. Its first block makes the executable, which is there. */
export async function readFirstGame({ readSteps, programs }: Newcomer): Promise<string[]> {
  const [setup = '', ...steps] = await readSteps('README.md');
  if (!BUILD.test(setup)) throw new Error('the README makes no executable');
  return [setup.replace(BUILD, '').replace('$PWD/dist', programs), ...steps];
}
