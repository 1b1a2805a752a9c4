import { afterAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LIVE_FLOWS } from '../../.ci/cli-flows.ts';
import { createApi } from '../support/api.ts';
import { type Flow, maskChanging, parseArguments, parseEvents, parseFlows } from '../support/cli-flows.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { openTerminal } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const SCREEN_CLEARED = '\u001b[H\u001b[2J';
const LINE_START = '\u001b[1G';
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it removes
const CONTROL_SEQUENCES = /\u001b(\[[\d?]*[A-Za-z]|[78])/g;
/** The address of the service on the page. */
const EXAMPLE_URL = 'https://play.example.com';

const muster = shareService();
const home = await mkdtemp(join(tmpdir(), 'muster-live-flows-'));
afterAll(() => rm(home, { recursive: true, force: true }));

/** Returns the lines that stay in a terminal: without progress bars, which are drawn over, and control sequences. */
function drawn(output: string): string {
  const lines = output.split('\n').map((line) => line.split(LINE_START).at(-1) ?? '');
  return lines.map((line) => line.replace(CONTROL_SEQUENCES, '')).join('\n');
}

/** Does what the page says happens while a command goes on, and compares what the terminal shows after each. */
async function follow(
  terminal: ReturnType<typeof openTerminal>,
  flow: Flow,
  { url, doEvent }: { url: string; doEvent: (event: string, output: string) => Promise<unknown> },
): Promise<void> {
  let seen = 0;
  const shown = () => terminal.output().slice(seen).split(SCREEN_CLEARED).at(-1) ?? '';
  const masked = () => maskChanging(drawn(shown()).replaceAll(url, EXAMPLE_URL));
  for (const { event, shown: wanted } of parseEvents(flow)) {
    seen = event === 'start' ? 0 : terminal.output().length;
    if (event === 'ctrl-C') terminal.pressCtrlC();
    else if (event.startsWith('the key ')) terminal.write(event.slice(-1));
    else if (event !== 'start') await doEvent(event, terminal.output());
    const is_same = waitFor(() => masked() === maskChanging(wanted), `what the page shows after "${event}"`);
    await is_same.catch(() => expect(`${flow.command}\n${masked()}`).toBe(`${flow.command}\n${maskChanging(wanted)}`));
  }
  await terminal.exited;
}

test('the page of the command line: commands that go on show in a terminal what the page shows', async () => {
  const [login, ...others] = parseFlows(LIVE_FLOWS);
  const dev = others.pop();
  if (!login || !dev) throw new Error('the page has no flows');
  const url = muster.config.public_url;
  const files = { 'server.ts': ROOM_SOURCE, 'public/index.html': '<p>the game</p>' };
  const { folder: live, run: runIn, openIn } = await makeProjectFolder(muster, home, { name: 'live', files });
  await runIn('init');
  await Bun.write(
    join(live, 'muster.yaml'),
    (await Bun.file(join(live, 'muster.yaml')).text()).replace('live', 'tanks'),
  );
  expect(await runIn('deploy', '--message', 'better graphics')).toMatchObject({ exit_code: 0 });

  const { games } = await muster.api.ok('GET', '/cloud/games', { token: muster.administrator_token });
  const linked = games.find(({ name_id }: { name_id: string }) => name_id === 'tanks');
  const user = { PATH: process.env.PATH ?? '', HOME: home, XDG_CONFIG_HOME: join(home, 'fresh') };
  const loggingIn = openTerminal([...COMMAND, 'login', url], user, { cwd: home });
  await follow(loggingIn, login, {
    url,
    async doEvent(_, output) {
      const page = await fetch(/http\S+\/link\/\S+/.exec(output)?.[0] ?? '');
      const device_link_token = page.url.slice(page.url.lastIndexOf('/') + 1);
      const body = { device_link_token, game_id: linked.game_id };
      await muster.api.ok('POST', '/cloud/devices/links/complete', { token: muster.administrator_token, body });
    },
  });

  let seat: { ports: { game: { hostname: string; port: number } }; player: { token: string } } | undefined;
  let socket: WebSocket | undefined;
  const token = (await runIn('tokens', 'create', 'public')).stdout.trim();
  const doEvent = async (event: string) => {
    if (event === 'the player connects' && seat) {
      const { hostname, port } = seat.ports.game;
      socket = new WebSocket(`ws://${hostname}:${port}/?token=${seat.player.token}`);
      return;
    }
    seat = await muster.api.ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });
  };
  for (const flow of others) await follow(openIn(parseArguments(flow.command)), flow, { url, doEvent });
  socket?.close();

  await using own = await makeHome({}, { has_prepared_database: true });
  const developing = openTerminal([...COMMAND, 'dev', '--no-open'], own.environment, { cwd: live });
  await follow(developing, dev, {
    // The page shows the address of this machine.
    url: EXAMPLE_URL,
    async doEvent(event, output) {
      if (event === 'server.ts is saved') {
        const server = await Bun.file(join(live, 'server.ts')).text();
        return await Bun.write(join(live, 'server.ts'), server.replace("'no seat'", "'no seat here'"));
      }
      const public_token = /public token +(\S+)/.exec(output)?.[1] ?? '';
      const body = { game_modes: ['default'] };
      return await createApi(own.url).ok('POST', '/matchmaker/lobbies/find', { token: public_token, body });
    },
  });
  await waitFor(() => own.processes().length === 0, 'the service and its servers to end');
}, 300_000);
