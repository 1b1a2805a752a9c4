import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

const OPTIONS = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];

/**
 * Installs packages of peers, which Muster does not depend on, beside scripts that need them. Returns why that failed;
 * undefined if it succeeded.
 */
export async function install(directory: string, packages: string[], scripts: string[]): Promise<string | undefined> {
  if (Bun.which('node') === null || Bun.which('npm') === null) return 'Node and npm are not installed';
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
  const errors = await new Response(npm.stderr).text();
  return (await npm.exited) === 0 ? undefined : `npm install failed (${errors.trim().split('\n')[0]})`;
}
