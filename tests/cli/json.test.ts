import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { find, makeControlledGame } from '../support/game-server.ts';
import { readToEnd } from '../support/processes.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-json-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('--json: commands that change something write one object about it', async () => {
  const game = await makeControlledGame(muster);
  const { lobby_id } = (await find(muster, game)).body.lobby;
  const server_id = await serversOf(muster, game).run('sleep 600');
  const { run } = await makeProjectFolder(muster, home, { name: 'changing', files: { 'a.txt': '' } });
  const { public_url: url } = muster.config;
  const { game_id } = game;
  const WRITTEN: [args: string[], answer: object][] = [
    [['lobbies', 'close', lobby_id], { lobby_id, is_closed: true }],
    [['lobbies', 'close', lobby_id, '--undo'], { lobby_id, is_closed: false }],
    [['lobbies', 'delete', lobby_id], { lobby_id }],
    [['servers', 'stop', server_id], { server_id }],
    [['tokens', 'revoke', '--yes'], { game_id }],
    [['use', 'here', '--url', `${url}/`], { profile: 'here', url, game: game_id }],
    [['logout'], { url }],
  ];
  for (const [args, answer] of WRITTEN) {
    const { exit_code, stdout } = await run(...args, '--game', game_id, '--json');
    expect([args, exit_code, stdout]).toEqual([args, 0, `${JSON.stringify(answer)}\n`]);
  }
}, 300_000);

test('--json: a command that fails writes one line of JSON to stderr, with the code and the ray id of a refusal', async () => {
  const { game_id } = await makeControlledGame(muster);
  const { run } = await makeProjectFolder(muster, home, { name: 'failing', files: { 'a.txt': '' } });
  const FAILING: [args: string[], error: object][] = [
    [
      ['lobbies', 'close', crypto.randomUUID(), '--game', game_id],
      { exit_code: 4, message: expect.stringContaining('no lobby') },
    ],
    [
      ['api', 'DELETE', `/cloud/games/${crypto.randomUUID()}/tokens`],
      {
        exit_code: 4,
        message: expect.any(String),
        code: expect.stringMatching(/NOT_FOUND$/),
        ray_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    ],
    [['logs', '--since', 'ever'], { exit_code: 2, message: expect.stringContaining('--since') }],
    [['status', '--gme', 'a'], { exit_code: 2, message: expect.stringContaining("unknown option '--gme'") }],
  ];
  for (const [args, error] of FAILING) {
    const { exit_code, stdout, stderr } = await run(...args, '--json');
    expect([args, stdout, JSON.parse(stderr), exit_code]).toEqual([args, '', { error }, exit_code]);
    expect(JSON.parse(stderr).error.exit_code).toBe(exit_code);
  }
}, 300_000);

test('json: a command that goes on writes an object when ctrl-C ends it', async () => {
  const { game_id } = await makeControlledGame(muster);
  const { start } = await makeProjectFolder(muster, home, { name: 'going-on', files: { 'a.txt': '' } });
  for (const args of [
    ['lobbies', 'watch'],
    ['watch', '/cloud/games'],
  ]) {
    const child = start([...args, '--game', game_id, '--json']);
    await child.stdout.getReader().read();
    child.kill('SIGINT');
    const { exit_code, stderr } = { exit_code: await child.exited, stderr: await new Response(child.stderr).text() };
    const error = { exit_code: 130, message: 'Stopped.' };
    expect([args, exit_code, JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '')]).toEqual([args, 130, { error }]);
  }
}, 300_000);

test('json: a local command that a signal stops writes that as an object', async () => {
  const commands = resolve(import.meta.dir, '../../src/commands');
  const script = `const { runDatabaseCommand } = await import('${commands}/database-command.ts');
const { createOutput } = await import('${commands}/command-output.ts');
const work = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
const stopped = runDatabaseCommand({ not_done: 'The backup was not made', output: createOutput(true) }, work);
process.kill(process.pid, 'SIGTERM');
process.exit(await stopped);`;
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'pipe' });
  const { exit_code, stderr } = await readToEnd(child);
  const message = 'The backup was not made, because SIGTERM stopped it.';
  expect([exit_code, JSON.parse(stderr)]).toEqual([130, { error: { exit_code: 130, message } }]);
});
