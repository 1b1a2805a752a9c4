import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from '../npm.ts';
import type { DialectName } from './dialects.ts';
import { frameOf, type PushServer, startServer, type Template } from './servers.ts';

/** The packages of the peers on Node. Muster does not depend on them: they are installed for one run. */
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
  /** Starts the peers; none if they could not be installed. */
  start(template: Template): Promise<(PushServer & AsyncDisposable)[]>;
}

/** Installs the peers into a directory of their own, or prints why it cannot. */
export async function installPeers(): Promise<Peers> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const scripts = PEERS.map(({ file }) => join(import.meta.dir, 'peers', file));
  const problem = await install(directory, PACKAGES, scripts);
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
