import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const SCREEN_CLEARED = '\u001b[H\u001b[2J';
const INTERRUPTED = [null, 130];

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-typed-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('in a terminal: init, deploy, lobbies watch, logs -f and rollback, typed one after the other', async () => {
  const files = { 'server.ts': ROOM_SOURCE };
  const { openIn, run, liveVersion } = await makeProjectFolder(muster, home, { name: 'typed', files });

  const init = openIn(['init']);
  expect(await init.exited).toBe(0);
  expect(init.output()).toContain('found    a script (server.ts)\r\nWrote muster.yaml. Next: muster deploy');
  const again = openIn(['init']);
  expect(await again.exited).toBe(2);
  for (const message of ['one', 'other']) {
    const deploy = openIn(['deploy', '--message', message]);
    expect(await deploy.exited).toBe(0);
    expect(deploy.output()).toContain(`→ ${message}`);
  }

  const table = openIn(['lobbies', 'watch']);
  await waitForOutput(table, 'typed prod: 0 lobbies, 0 players');
  const token = (await run('tokens', 'create', 'public')).stdout.trim();
  const body = { game_modes: ['default'] };
  const { lobby } = await muster.api.ok('POST', '/matchmaker/lobbies/find', { token, body });
  await waitForOutput(table, lobby.lobby_id.slice(-12));
  /** What the terminal shows after the last change. */
  const screen = () => table.output().split(SCREEN_CLEARED).at(-1) ?? '';
  await waitFor(() => / 1\/8 +open +other /.test(screen()), 'the lobby with its player');

  const logs = openIn(['logs', '-f', '--lobby', lobby.lobby_id]);
  await waitForOutput(logs, `lobby ${lobby.lobby_id} is ready at port`);
  const all = openIn(['logs', '-f', '--all']);
  await waitForOutput(all, `lobby ${lobby.lobby_id} is ready at port`);

  const rollback = openIn(['rollback']);
  expect(await rollback.exited).toBe(0);
  expect(rollback.output()).toContain('typed prod: other → one');
  expect(rollback.output()).toContain('On other versions until they end: 1 lobby, 1 player.');
  expect(await liveVersion()).toBe('one');

  await run('lobbies', 'delete', lobby.lobby_id);
  await waitFor(() => screen().includes('typed prod: 0 lobbies, 0 players'), 'the table without the lobby');
  // The log's end is that of its server, and its exit code says how it ended.
  expect(await logs.exited).toBe(0);
  for (const followed of [table, all]) {
    followed.pressCtrlC();
    expect(INTERRUPTED).toContain(await followed.exited);
  }
  expect(all.output()).not.toContain('not followed');
}, 300_000);
