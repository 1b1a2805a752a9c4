import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeGame } from '../support/game.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';

/** Clears the screen, sets the title of the window, begins a sequence in one sign, deletes, and reorders. */
const HOSTILE = 'a\u001b[2J\u001b]0;taken\u0007\u009b31m\u007f\u202eb';
/** What a terminal would obey. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-terminal-'));
}, 90_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('terminal: names from the service cannot control it, in tables, messages and JSON', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, game);
  const server_id = await servers.run('sleep 600', { tags: { lobby_id: HOSTILE } });
  const { run } = await makeProjectFolder(muster, home, { name: 'hostile', files: { 'a.txt': '' } });
  const at = ['--game', game.game_id];
  const table = await run('servers', ...at);
  expect([table.exit_code, table.data]).toEqual([0, expect.stringContaining('31m\ufffd\ufffdb')]);
  const logs = await run('logs', ...at);
  expect([logs.exit_code, logs.words]).toEqual([0, expect.stringContaining('lobby a\ufffd[2J\ufffd]0;taken')]);
  const json = await run('servers', '--json', ...at);
  expect(JSON.parse(json.data).servers[0].tags.lobby_id).toBe(HOSTILE);
  const shown = await run('servers', 'show', server_id, ...at);
  expect(JSON.parse(shown.data).server.tags.lobby_id).toBe(HOSTILE);
  expect(shown.data.split('\n').length).toBeGreaterThan(5);
  for (const { data, words } of [table, logs, json, shown]) expect(data + words).not.toMatch(OBEYED);
  await servers.destroy(server_id);
}, 90_000);

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
  expect([refused.exit_code, refused.words]).toEqual([1, expect.stringContaining('no\na\ufffd[2J')]);
  expect(refused.words).not.toMatch(OBEYED);
  const other = await run('doctor', '--url', address);
  expect([other.exit_code, other.words]).toEqual([1, expect.stringContaining('did not answer as Muster does')]);
}, 90_000);
