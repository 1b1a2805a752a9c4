import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { makeGame } from '../support/game.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { COMMAND, commandOf } from '../support/program.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { openTerminal, waitForOutput } from '../support/terminal.ts';

/** Clears the screen, sets the title of the window, begins a sequence in one sign, deletes, and reorders. */
const HOSTILE = 'a\u001b[2J\u001b]0;taken\u0007\u009b31m\u007f\u202eb';
/** Control sequences that a terminal would execute. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const EXECUTED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

/** Empties the line of a terminal. */
const CLEAR_LINE = '\u001b[K';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-terminal-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('terminal: names from the service cannot control it, in tables, messages and JSON', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, game);
  const server_id = await servers.run('sleep 600', { tags: { lobby_id: HOSTILE } });
  const { run } = await makeProjectFolder(muster, home, { name: 'hostile', files: { 'a.txt': '' } });
  const in_game = ['--game', game.game_id];
  const table = await run('servers', ...in_game);
  expect([table.exit_code, table.stdout]).toEqual([0, expect.stringContaining('31m\ufffd\ufffdb')]);
  const logs = await run('logs', ...in_game);
  expect([logs.exit_code, logs.stderr]).toEqual([0, expect.stringContaining('lobby a\ufffd[2J\ufffd]0;taken')]);
  const json = await run('servers', '--json', ...in_game);
  expect(JSON.parse(json.stdout).servers[0].tags.lobby_id).toBe(HOSTILE);
  const shown = await run('servers', 'show', server_id, ...in_game);
  expect(JSON.parse(shown.stdout).server.tags.lobby_id).toBe(HOSTILE);
  expect(shown.stdout.split('\n').length).toBeGreaterThan(5);
  for (const { stdout, stderr } of [table, logs, json, shown]) expect(stdout + stderr).not.toMatch(EXECUTED);
  await servers.destroy(server_id);
}, 300_000);

test('terminal: the error of a hostile service cannot control it, and an answer of another program is named', async () => {
  const { run } = await makeProjectFolder(muster, home, { name: 'refused', files: { 'a.txt': '' } });
  using service = Bun.serve({
    port: 0,
    fetch: ({ url }) =>
      url.endsWith('/cloud/games')
        ? Response.json({ code: HOSTILE, message: `no\n${HOSTILE}`, ray_id: HOSTILE }, { status: 400 })
        : new Response('<p>another program</p>'),
  });
  const address = service.url.href;
  const refused = await run('status', '--url', address);
  expect([refused.exit_code, refused.stderr]).toEqual([1, expect.stringContaining('no\na\ufffd[2J')]);
  expect(refused.stderr).not.toMatch(EXECUTED);
  const other = await run('doctor', '--url', address);
  expect([other.exit_code, other.stderr]).toEqual([1, expect.stringContaining('did not answer as Muster does')]);
}, 300_000);

test('terminal: work that takes longer than a second is named with its seconds, and the line is removed', async () => {
  const slow = `await Bun.sleep(2_500);\n${ROOM_SOURCE}`;
  const project =
    'game: slow\nbuild: {path: server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}';
  const files = { 'server.ts': slow, 'muster.yaml': project };
  const { openIn, run } = await makeProjectFolder(muster, home, { name: 'slow', files });
  const deploying = openIn(['deploy']);
  expect(await deploying.exited).toBe(0);
  const shown = deploying.output().split(`\r${CLEAR_LINE}`);
  expect(shown).toContainEqual(expect.stringMatching(/^check {4}a lobby of the version … [1-9] s$/));
  expect(shown).toContainEqual(expect.stringMatching(/^check {4}a lobby of the version was ready after/));
  const playing = openIn(['bots', '1', '--for', '12s']);
  expect(await playing.exited).toBe(0);
  const counted = /^\d+ seats?, \d+ connected, 0 faults … \d+ s$/;
  expect(playing.output().split(`\r${CLEAR_LINE}`)).toContainEqual(expect.stringMatching(counted));
  // Without a terminal, nothing is shown that is not said.
  const quiet = await run('bots', '1', '--for', '12s');
  expect([quiet.exit_code, quiet.stderr]).toEqual([0, '1 bot plays "default" in slow prod for 12s.\n']);
}, 300_000);

test('terminal: the line of progress is no longer than a narrow terminal, which could not empty it otherwise', async () => {
  const file = resolve(import.meta.dir, '../../src/terminal/progress-line.ts');
  const script = `const { openProgress } = await import(${JSON.stringify(file)});
using progress = openProgress();
progress.show('Copying the table of the lobbies … 3.4 MB');`;
  const { exited, output } = openTerminal([process.execPath, '-e', script], {}, { cols: 20 });
  expect(await exited).toBe(0);
  expect(output()).toBe(`\r${CLEAR_LINE}Copying the table o\r${CLEAR_LINE}`);
}, 300_000);

test('terminal: lobbies watch writes each lobby on one line of a narrow terminal', async () => {
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'narrow', files: { 'a.txt': '' } });
  const game = await makeGame(muster.api, muster.administrator_token);
  const env = { HOME: home, MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token };
  const command = [...commandOf('source'), 'lobbies', 'watch', '--game', game.game_id];
  const table = openTerminal(command, env, { cwd: folder, cols: 40 });
  await waitForOutput(table, '0 lobbies, 0 players\r\n\u001b[?7h');
  expect(table.output()).toStartWith('\u001b[?7l\u001b[H\u001b[2J');
  expect(table.output()).toEndWith('\r\n\u001b[?7h');
  table.pressCtrlC();
  await table.exited;
  expect((await run('lobbies', '--game', game.game_id)).stdout).not.toContain('\u001b');
}, 300_000);

test('terminal: a full disk of the output is named in a sentence, and in an object with --json', async () => {
  for (const args of [['complete', 'bash'], ['--version'], ['config', 'schema'], ['config', 'schema', '--json']]) {
    const command = ['/bin/sh', '-c', '"$@" >/dev/full', 'sh', ...COMMAND, ...args];
    const child = Bun.spawn(command, { cwd: home, env: { HOME: home }, stdin: 'ignore', stderr: 'pipe' });
    const stderr = await new Response(child.stderr).text();
    const sentence = 'The output cannot be written, because the disk is full. Free some space.';
    const written = args.includes('--json') ? { error: { exit_code: 1, message: sentence } } : sentence;
    expect([args, await child.exited]).toEqual([args, 1]);
    expect(args.includes('--json') ? JSON.parse(stderr) : stderr.trim()).toEqual(written);
  }
}, 300_000);

test('terminal: a command whose reader has ended stops, also under nohup', async () => {
  const file = resolve(import.meta.dir, '../../src/terminal/terminal.ts');
  const script = `const { terminal } = await import(${JSON.stringify(file)});
for (;;) { terminal.line('a line'); await Bun.sleep(1); }`;
  const command = [
    '/bin/bash',
    '-c',
    `trap "" HUP; "$@" | head -1; exit \${PIPESTATUS[0]}`,
    'bash',
    process.execPath,
    '-e',
    script,
  ];
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe' });
  expect([await new Response(child.stdout).text(), await child.exited]).toEqual(['a line\n', 129]);
}, 300_000);
