import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeGame, type TestGame } from '../support/game.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

/** Longer than a command waits for further lines of a server that has ended. */
const LOG_DELAY_MS = 1_500;
const LINES = 700;
/** Longer than a command that does not follow waits for a service. */
const OUTAGE_MS = 6_000;

const muster = shareService();
let home: string;
let game: TestGame;
let slow: { url: string; [Symbol.asyncDispose](): Promise<void> };
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-slow-'));
  game = await makeGame(muster.api, muster.administrator_token);
  slow = openSlowProxy(muster.config.public_url);
}, 300_000);
afterAll(async () => {
  await slow[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

/** Passes requests on to a service. Its answers with lines of logs arrive late. */
function openSlowProxy(url: string, { port = 0, log_delay_ms = LOG_DELAY_MS } = {}) {
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    idleTimeout: 120,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers, signal } = request;
      const answer = await fetch(`${url}${pathname}${search}`, { method, headers, signal });
      if (pathname.endsWith('/logs')) await Bun.sleep(log_delay_ms);
      return new Response(await answer.text(), {
        status: answer.status,
        headers: { 'content-type': 'application/json' },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, port: server.port, [Symbol.asyncDispose]: () => server.stop(true) };
}

test('logs: no line is lost on a slow connection, of a server that has ended and of one that ends meanwhile', async () => {
  const servers = serversOf(muster, game);
  const ended = await servers.run(`seq 1 ${LINES}; echo last`);
  await waitFor(async () => (await servers.linesOf(ended)).includes('last'), 'the lines');
  const where = ['--url', slow.url, '--game', game.game_id];
  const { run } = await makeProjectFolder(muster, home, { name: 'slow', files: { 'a.txt': '' } });
  const linesOf = (stdout: string) =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(15))
      .filter((line) => !line.startsWith('[muster]'));
  const all = [...Array.from({ length: LINES }, (_, index) => String(index + 1)), 'last'];
  const since = await run('logs', ended, '--since', '1d', ...where);
  expect([since.exit_code, linesOf(since.stdout)]).toEqual([0, all]);
  const found = await run('logs', ended, '--since', '1d', '--grep', '1', ...where);
  expect(linesOf(found.stdout)).toEqual(all.filter((line) => line.includes('1')));
  const followed = await run('logs', ended, '-f', ...where);
  expect(linesOf(followed.stdout)).toEqual(all);
}, 300_000);

test('logs: the lines of a server that goes on writing them end, with --grep and without', async () => {
  const servers = serversOf(muster, game);
  const server_id = await servers.run('while :; do echo tick; sleep 0.1; done');
  await servers.waitForLines(server_id, 3);
  const { run } = await makeProjectFolder(muster, home, { name: 'endless', files: { 'a.txt': '' } });
  for (const search of [[], ['--grep', 'TICK']]) {
    const read = await run('logs', server_id, '--since', '1d', '--game', game.game_id, ...search);
    expect([read.exit_code, read.stdout]).toEqual([0, expect.stringContaining('  tick\n')]);
  }
}, 300_000);

test('logs: -f goes on after the service was unreachable for some seconds', async () => {
  const servers = serversOf(muster, game);
  const server_id = await servers.run('echo before; sleep 12; echo after');
  const { start } = await makeProjectFolder(muster, home, { name: 'outage', files: { 'a.txt': '' } });
  const proxy = openSlowProxy(muster.config.public_url, { log_delay_ms: 0 });
  const child = start(['logs', server_id, '-f', '--url', proxy.url, '--game', game.game_id]);
  let stdout = '';
  const reading = (async () => {
    for await (const chunk of child.stdout) stdout += Buffer.from(chunk).toString();
  })();
  await waitFor(() => stdout.includes('  before\n'), 'the first line');
  await proxy[Symbol.asyncDispose]();
  await Bun.sleep(OUTAGE_MS);
  await using _ = openSlowProxy(muster.config.public_url, { port: proxy.port, log_delay_ms: 0 });
  expect(await child.exited).toBe(0);
  await reading;
  expect(stdout.match(/ {2}(before|after)\n/g)).toEqual(['  before\n', '  after\n']);
}, 300_000);
