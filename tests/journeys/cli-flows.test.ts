import { afterAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLI_FLOWS } from '../../.ci/cli-flows.ts';
import { maskChanging, parseArguments, parseFlows } from '../support/cli-flows.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { COMMAND } from '../support/program.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

/** Lets a command write stderr to stdout, as a terminal shows both, in their order. */
const WITH_STDERR = ['sh', '-c', 'exec "$@" 2>&1', 'sh'];

const muster = shareService();
const home = await mkdtemp(join(tmpdir(), 'muster-flows-'));
afterAll(() => rm(home, { recursive: true, force: true }));

const folder = join(home, 'tanks');

async function attempt(args: string[]): Promise<{ exit_code: number; output: string }> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    MUSTER_URL: muster.config.public_url,
    MUSTER_TOKEN: muster.administrator_token,
  };
  const child = Bun.spawn([...WITH_STDERR, ...COMMAND, ...args], { cwd: folder, env, stdin: 'ignore', stdout: 'pipe' });
  const output = await new Response(child.stdout).text();
  return { exit_code: await child.exited, output };
}

async function run(args: string[]): Promise<string> {
  const { exit_code, output } = await attempt(args);
  expect([args, exit_code, output]).toEqual([args, 0, expect.any(String)]);
  return output;
}

/** Finds a seat as a player. */
async function play(): Promise<{ lobby_id: string; ray_id: string }> {
  const token = (await run(['tokens', 'create', 'public'])).trim();
  const found = await muster.api.call('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });
  return { lobby_id: found.body.lobby.lobby_id, ray_id: found.headers.get('rvt-ray-id') ?? '' };
}

test('the page of the command line: what it shows of each command is what the command writes', async () => {
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  await Bun.write(join(folder, 'public/index.html'), '<p>the game</p>');
  await Bun.write(join(folder, 'public/style.css'), 'p { color: green; }');
  for (const { command, output } of parseFlows(CLI_FLOWS)) {
    const args = parseArguments(command);
    if (args.includes('better graphics')) await Bun.write(join(folder, 'public/style.css'), 'p { color: blue; }');
    if (args[0] === 'why') {
      await waitFor(async () => (await run(['lobbies', '--json'])).includes('"lobbies":[]'), 'the bots to leave');
      await run(['lobbies', 'close', (await play()).lobby_id]);
      args[1] = (await play()).ray_id;
      await waitFor(async () => (await attempt(args)).exit_code === 0, 'the receipt');
    }
    expect(`${command}\n${maskChanging(await run(args))}`).toBe(`${command}\n${maskChanging(output)}`);
  }
}, 300_000);
