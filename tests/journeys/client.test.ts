import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDemoToken } from '../support/lobbies/players.ts';
import { enterRoom } from '../support/lobbies/room.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const NODE = Bun.which('node');

/** A program that imports the client as served, and prints what it receives until its input has a line. */
const SOURCE = `
import { connect } from './client.mjs';
const [url, token] = process.argv.slice(2);
let requested = 0;
const readToken = async () => {
  requested += 1;
  if (requested === 1) throw new Error('not now');
  return token;
};
const muster = connect({ url, token: readToken, timing: { retry_ms: 50 } });
process.on('uncaughtException', ({ message }) => console.log('thrown', message));
const stop = muster.watch('/matchmaker/lobbies/list', () => {
  stop();
  throw new Error('by a callback');
});
muster.watch('/matchmaker/lobbies/list', ({ lobbies }) => {
  console.log(typeof WebSocket, 'sees', lobbies.map(({ total_player_count }) => total_player_count).join());
});
muster.watch('/nothing/here', () => {}, { onError: ({ code }) => console.log('refused', code) });
const waiting = connect({ url, token: () => new Promise(() => {}), timing: { poll_within_ms: 3_600_000 } });
waiting.watch('/matchmaker/lobbies/list', () => console.log('sees without a token'));
process.stdin.once('data', () => {
  muster.close();
  waiting.close();
  process.stdin.destroy();
});
`;

const PROGRAMS: [string, string[], string][] = [
  ['Bun', [process.execPath], 'function'],
  // Later versions need no flag.
  ['Node, with a WebSocket', [NODE ?? 'node', '--experimental-websocket'], 'function'],
  ['Node, without one', [NODE ?? 'node', '--no-experimental-websocket'], 'undefined'],
];

describe('client: the served file, in a program of', () => {
  let home: Home;
  let service: Program;
  beforeAll(async () => {
    home = await makeHome({}, { has_prepared_database: true });
    service = await home.start();
  }, 300_000);
  afterAll(() => home[Symbol.asyncDispose]());

  for (const [name, command, has_socket] of PROGRAMS) {
    const is_missing = NODE === null && command[0] === 'node';
    test.skipIf(is_missing)(`${name}${is_missing ? ' (Node is not installed)' : ''}`, async () => {
      const { url, api } = service;
      await using directory = await openDirectory();
      await Bun.write(join(directory.path, 'client.mjs'), await (await fetch(`${url}/client.js`)).text());
      await Bun.write(join(directory.path, 'program.mjs'), SOURCE);
      const token = await readDemoToken(url);

      await using proxy = await openTcpProxy({ host: '127.0.0.1', port: Number(new URL(url).port) });
      const arguments_ = [join(directory.path, 'program.mjs'), `http://127.0.0.1:${proxy.port}`, token];
      const running = Bun.spawn([...command, ...arguments_], {
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'pipe',
      });
      let output = '';
      const reading = (async () => {
        for await (const bytes of running.stdout) output += Buffer.from(bytes).toString();
      })();
      let read_until = 0;
      /** Waits for a line after those of earlier waits. */
      const waitForLine = (line: RegExp) =>
        waitFor(
          () => {
            const found = line.exec(output.slice(read_until));
            if (found) read_until += found.index + found[0].length;
            return found !== null;
          },
          () => `${line} in the output ${output}`,
        );

      await waitForLine(new RegExp(`^${has_socket} sees .*$`, 'm'));
      const body = { game_modes: ['default'] };
      const player = await enterRoom(await api.ok('POST', '/matchmaker/lobbies/find', { token, body }));
      await waitForLine(/sees 1$/m);
      await player.close();
      await waitForLine(/sees 0$/m);
      // A closed client does not keep its program from ending.
      running.stdin.write('end');
      await running.stdin.end();
      expect(await running.exited).toBe(0);
      await reading;
      expect(output.match(/thrown .*/g)).toEqual(['thrown by a callback']);
      expect(output.match(/refused .*/g)).toEqual(['refused API_NOT_FOUND']);
      // All watches share one socket; each poll may have a connection of its own.
      if (has_socket === 'function') expect(proxy.connections).toBe(1);
      else expect(proxy.connections).toBeGreaterThan(1);
    });
  }
});

async function openDirectory(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'muster-program-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
