import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

const OPTIONS = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];

/**
 * Installs packages that others have made, beside scripts of ours that need them: they are no dependencies of Muster's.
 * Gives what went wrong.
 */
export async function install(directory: string, packages: string[], scripts: string[]): Promise<string | undefined> {
  if (Bun.which('node') === null || Bun.which('npm') === null) return 'there is no Node here';
  await mkdir(join(directory, 'node_modules'));
  await Bun.write(join(directory, 'package.json'), '{"private":true}');
  for (const script of scripts) {
    await Bun.write(join(directory, script.slice(script.lastIndexOf('/') + 1)), Bun.file(script));
  }
  const npm = Bun.spawn(['npm', 'install', ...OPTIONS, ...packages], {
    cwd: directory,
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const said = await new Response(npm.stderr).text();
  return (await npm.exited) === 0 ? undefined : `npm install failed (${said.trim().split('\n')[0]})`;
}
