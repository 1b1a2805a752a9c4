import { afterAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_KEYS } from '../../.ci/cli-json.ts';
import { createProgram } from '../../src/cli/program.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

/** Commands whose JSON is not an object of their own: a body of the API, lines of events, or a file. */
const OTHERS = ['dev', 'logs', 'config show', 'config schema', 'api', 'watch', 'complete'];

const muster = shareService();
const home = await mkdtemp(join(tmpdir(), 'muster-shapes-'));
afterAll(() => rm(home, { recursive: true, force: true }));

test('the page of the command line: the JSON of each command has the keys that the page shows', async () => {
  const files = { 'server.ts': ROOM_SOURCE, 'public/index.html': '<p>the game</p>' };
  const { run } = await makeProjectFolder(muster, home, { name: 'shapes', files });
  const keys: Record<string, string[]> = {};
  /** Runs a command, and keeps the keys of its JSON. */
  async function keep(name: string, ...args: string[]) {
    const { exit_code, stdout, stderr } = await run(...name.split(' '), ...args, '--json');
    expect([name, args, stderr, exit_code < 2]).toEqual([name, args, stderr, true]);
    const answer = JSON.parse(stdout.split('\n')[0] ?? '');
    keys[name] = Object.keys(answer).toSorted();
    return answer;
  }
  await keep('init');
  await keep('config check');
  await keep('deploy', '--message', 'one');
  await keep('deploy', '--message', 'other');
  const { token } = await keep('tokens create', 'public');
  const body = { game_modes: ['default'] };
  const { lobby, headers } = await find(token, body);
  const ray_id = headers.get('rvt-ray-id') ?? '';
  await waitFor(async () => (await run('why', ray_id)).exit_code === 0, 'the receipt');
  await keep('why', ray_id);
  for (const name of [
    'status',
    'lobbies list',
    'players',
    'versions list',
    'builds',
    'namespaces',
    'regions',
    'machines',
  ]) {
    await keep(name);
  }
  for (const name of ['open', 'doctor', 'whoami', 'tokens inspect', 'exports lobbies']) await keep(name);
  const { servers } = await keep('servers list');
  await keep('servers show', servers[0].id);
  await keep('exports log', servers[0].id);
  await keep('versions show', 'one');
  await keep('versions diff', 'one', 'other');
  await keep('lobbies show', lobby.lobby_id);
  await keep('lobbies close', lobby.lobby_id);
  await keep('lobbies delete', lobby.lobby_id);
  await keep('rollback');
  await keep('bots', '1', '--for', '1s');
  keys['lobbies watch'] = await firstKeys('lobbies', 'watch');
  await find(token, body);
  await keep('servers stop', (await keep('servers list')).servers[0].id);
  await keep('tokens revoke', '--yes');
  await keep('use', 'here', '--url', muster.config.public_url, '--game', 'shapes');
  await keep('login', muster.config.public_url, '--token', muster.administrator_token);
  await keep('logout');
  const shown = Object.entries(JSON_KEYS).map(([name, text]) => [name, text.split(', ')] as const);
  for (const [name, all_keys] of shown) {
    const written = keys[name] ?? [];
    const missing = all_keys.filter((key) => !key.endsWith('?') && !written.includes(key));
    const unknown = written.filter((key) => !all_keys.includes(key) && !all_keys.includes(`${key}?`));
    expect([name, missing, unknown]).toEqual([name, [], []]);
  }

  const all = createProgram().commands.flatMap((one) => (one.commands.length > 0 ? [...one.commands] : [one]));
  const names = all.map((one) => [one.parent?.name(), one.name()].filter((part) => part !== 'muster').join(' '));
  expect(names.filter((name) => !OTHERS.includes(name)).toSorted()).toEqual(Object.keys(JSON_KEYS).toSorted());

  async function find(public_token: string, wanted: object) {
    const found = await muster.api.call('POST', '/matchmaker/lobbies/find', { token: public_token, body: wanted });
    return { lobby: found.body.lobby, headers: found.headers };
  }

  /** Returns the keys of the first line of a command that goes on. */
  async function firstKeys(...args: string[]): Promise<string[]> {
    return Object.keys(JSON.parse(await firstLine(args))).toSorted();
  }

  async function firstLine(args: string[]): Promise<string> {
    const { start } = await makeProjectFolder(muster, home, { name: 'shapes' });
    const child = start([...args, '--json']);
    let text = '';
    for await (const chunk of child.stdout) {
      text += Buffer.from(chunk).toString();
      if (text.includes('\n')) break;
    }
    child.kill();
    await child.exited;
    return text.split('\n')[0] ?? '';
  }
}, 300_000);
