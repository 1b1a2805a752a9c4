import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DialectName } from './dialects.ts';
import { frameOf, type PushServer, startServer, type Template } from './servers.ts';

/** What others push with, on Node. They are no dependencies of Muster's: they are installed for one run. */
const PACKAGES = [
  'ws@8.23.0',
  'socket.io@4.8.4',
  '@colyseus/core@0.18.17',
  '@colyseus/schema@5.0.34',
  '@colyseus/ws-transport@0.18.4',
];
const PEERS: { name: string; file: string; dialect: DialectName }[] = [
  { name: 'ws on Node', file: 'ws.mjs', dialect: 'plain' },
  { name: 'Socket.IO on Node', file: 'socket-io.mjs', dialect: 'socket_io' },
  { name: 'Colyseus on Node', file: 'colyseus.mjs', dialect: 'colyseus' },
];

export interface Peers extends AsyncDisposable {
  /** Starts all of them; none where they could not be installed. */
  start(template: Template): Promise<(PushServer & AsyncDisposable)[]>;
}

/** Installs the peers into a directory of their own, or says why there are none. */
export async function installPeers(): Promise<Peers> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const problem = await install(directory);
  if (problem !== undefined) console.log(`Without ws, Socket.IO and Colyseus: ${problem}`);
  return {
    async start(template) {
      if (problem !== undefined) return [];
      const frame = frameOf(template);
      return await Promise.all(
        PEERS.map(({ name, file, dialect }) =>
          startServer(name, ['node', join(directory, file), frame], { dialect, cwd: directory }),
        ),
      );
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Gives what went wrong. */
async function install(directory: string): Promise<string | undefined> {
  if (Bun.which('node') === null || Bun.which('npm') === null) return 'there is no Node here';
  await mkdir(join(directory, 'node_modules'));
  await Bun.write(join(directory, 'package.json'), '{"private":true}');
  for (const { file } of PEERS) await Bun.write(join(directory, file), Bun.file(join(import.meta.dir, 'peers', file)));
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const npm = Bun.spawn(['npm', 'install', ...options, ...PACKAGES], {
    cwd: directory,
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const said = await new Response(npm.stderr).text();
  return (await npm.exited) === 0 ? undefined : `npm install failed (${said.trim().split('\n')[0]})`;
}
