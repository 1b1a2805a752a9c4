import { join } from 'node:path';
import { readToEnd } from './processes.ts';
import { COMMAND } from './program.ts';
import type { TestService } from './service.ts';
import { openTerminal } from './terminal.ts';

/** A folder with the files of a game, in which commands run as the administrator of a service. */
export async function makeProjectFolder(
  { config, administrator_token }: Pick<TestService, 'config' | 'administrator_token'>,
  home: string,
  { name, files = {}, command = COMMAND }: { name: string; files?: Record<string, string>; command?: string[] },
) {
  const folder = join(home, name);
  for (const [path, content] of Object.entries(files)) await Bun.write(join(folder, path), content);
  const environment = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    MUSTER_URL: config.public_url,
    MUSTER_TOKEN: administrator_token,
  };
  /** Starts a command without a terminal, with more variables in its environment. */
  const start = (args: string[], variables: Record<string, string> = {}) =>
    Bun.spawn([...command, ...args], {
      cwd: folder,
      env: { ...environment, ...variables },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
  /** Starts a command in a terminal. */
  const openIn = (args: string[], variables: Record<string, string> = {}) =>
    openTerminal([...COMMAND, ...args], { ...environment, ...variables }, { cwd: folder });
  async function run(...args: string[]) {
    const child = start(args);
    return await readToEnd(child);
  }
  const liveVersion = async () =>
    JSON.parse((await run('status', '--game', name, '--json')).stdout).version.display_name;
  return { folder, run, start, openIn, liveVersion };
}
