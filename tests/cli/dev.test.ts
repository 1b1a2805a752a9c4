import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmod, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { portOf } from '../../src/cli/url-parts.ts';
import { createApi } from '../support/api.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { openForwardProxy, through } from '../support/network/forward-proxy.ts';
import { COMMAND, type Home, makeHome } from '../support/program.ts';
import { openTerminal, waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const PROJECT = `game: tanks
build: {path: server.ts}
site: public
matchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}
`;

let home: Home;
let folder: string;
beforeAll(async () => {
  home = await makeHome({}, { has_prepared_database: true });
  folder = await mkdtemp(join(tmpdir(), 'muster-dev-'));
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  await Bun.write(join(folder, 'public/index.html'), 'the game');
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
}, 300_000);
afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Starts `muster dev` in a terminal of the folder. */
function startDev(settings: Record<string, string> = {}, cwd = folder) {
  return openTerminal([...COMMAND, 'dev', '--no-open'], { ...home.environment, ...settings }, { cwd });
}

/** Finds a seat with the public token that was shown. */
/** Starts the command and, once it checks a version of a server that never gets ready, lets the service answer nothing more. */
async function startCheckWithoutAnswers() {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), 'setInterval(() => {}, 1_000);');
  let is_silent = false;
  await using opened = new AsyncDisposableStack();
  const proxy = opened.use(await openForwardProxy({ answerFor: () => (is_silent ? 'no answer' : undefined) }));
  const terminal = startDev(through(proxy));
  const isBeingChecked = async () =>
    (await readServers('deploy-check').catch(() => [])).some((one) => !one.destroyed_at);
  await waitFor(isBeingChecked, 'a version to be checked');
  is_silent = true;
  const everything = opened.move();
  return { terminal, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

async function findSeat(output: string): Promise<{ lobby_id: string; body: string; server_port: number }> {
  const token = /public token +(\S+)/.exec(output)?.[1];
  if (token === undefined) throw new Error(output);
  const { lobby, ports } = await createApi(home.url).ok('POST', '/matchmaker/lobbies/find', {
    token,
    body: { game_modes: ['default'] },
  });
  const { hostname, port } = ports.game;
  const body = await (await fetch(`http://${hostname}:${port}/`)).text();
  return { lobby_id: lobby.lobby_id, body, server_port: port };
}

/** Watches a lobby as the client of a player. Returns what it sees until the lobby has ended. */
async function watchLobby(output: string, lobby_id: string): Promise<string[]> {
  const token = /public token +(\S+)/.exec(output)?.[1] ?? '';
  const seen: string[] = [];
  for (let index: string | undefined; ; ) {
    const watch = index === undefined ? '' : `?watch_index=${index}`;
    const { status, body } = await createApi(home.url).get(`/matchmaker/lobbies/${lobby_id}${watch}`, token);
    const now = status === 200 ? (body.lobby.is_closed ? 'closed' : 'open') : body.code;
    if (seen.at(-1) !== now) seen.push(now);
    if (status !== 200) return seen;
    index = body.watch.index;
  }
}

test('dev: a folder is playable, a saved file replaces its lobbies, an error keeps them, and q leaves nothing', async () => {
  const terminal = startDev();
  await waitForOutput(terminal, 'The first version: live after');
  expect(terminal.output()).toContain('game     tanks is new');
  const page = /players +(\S+),/.exec(terminal.output())?.[1] ?? '';
  expect(page).toBe(`http://tanks.sites.localhost:${new URL(home.url).port}`);
  expect(await (await fetch(page)).text()).toBe('the game');

  // Two players of two share the lobby, and its log is shown.
  const first = await findSeat(terminal.output());
  expect((await findSeat(terminal.output())).lobby_id).toBe(first.lobby_id);
  await waitForOutput(terminal, `lobby ${first.lobby_id} is ready at port`);

  // Clients that watch their lobby see that it is closed before it ends.
  const seen = watchLobby(terminal.output(), first.lobby_id);
  const server = await Bun.file(join(folder, 'server.ts')).text();
  await Bun.write(join(folder, 'text.ts'), `export const text = 'no seat here';`);
  await Bun.write(
    join(folder, 'server.ts'),
    `import { text } from './text.ts';\n${server.replace("'no seat'", 'text')}`,
  );
  await waitForOutput(terminal, 'server.ts changed: live after');
  expect(terminal.output()).toContain('; of the old version, 1 lobby with players is closed and ends in 2 s');
  await waitForOutput(terminal, 'The closed lobby has ended');
  expect(await seen).toEqual(['open', 'closed', 'MATCHMAKER_LOBBY_STOPPED']);
  expect(await findSeat(terminal.output())).toMatchObject({ body: 'no seat here' });
  // A file that the script imports is watched like the script.
  await Bun.write(join(folder, 'text.ts'), `export const text = 'no seat there';`);
  await waitForOutput(terminal, 'text.ts changed: live after');
  const next = await findSeat(terminal.output());
  expect(next).toMatchObject({ body: 'no seat there' });
  expect(next.lobby_id).not.toBe(first.lobby_id);

  await Bun.write(join(folder, 'server.ts'), `throw new Error('a mistake of the developer');`);
  await waitForOutput(terminal, 'The version before stays live.');
  expect(terminal.output()).toContain('a mistake of the developer');
  await Bun.write(join(folder, 'muster.yaml'), `${PROJECT}\nbiuld: x`);
  await waitForOutput(terminal, 'muster.yaml: biuld is unknown');
  expect(await findSeat(terminal.output())).toEqual(next);

  terminal.write('r');
  await waitForOutput(terminal, '1 lobby with players is closed and ends in 2 s\r\nThe closed');
  // A log that is followed until the stop is no error.
  const { lobby_id } = await findSeat(terminal.output());
  await waitForOutput(terminal, `lobby ${lobby_id} is ready at port`);
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).not.toContain('AbortError');
  await waitFor(() => home.processes().length === 0, 'the service, PostgreSQL and all game servers to end');
}, 300_000);

test('dev: ctrl-C ends it, also while the service starts; a second one uses the service of the first', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const early = startDev();
  await waitFor(() => home.processes().length > 0, 'the service to start');
  early.pressCtrlC();
  await early.exited;
  await waitFor(() => home.processes().length === 0, 'the first service to end');

  const one = startDev();
  await waitForOutput(one, 'The first version: live after');
  const other = startDev();
  await waitForOutput(other, 'The first version: live after');
  other.pressCtrlC();
  expect(await other.exited).toBe(0);
  // Without its data directory, as in another folder, the command has no token of that service.
  const elsewhere = startDev({ MUSTER_DATA: join(folder, 'other-data') });
  expect(await elsewhere.exited).toBe(1);
  expect(elsewhere.output()).toContain(`Another service runs at ${home.url}`);
  expect(elsewhere.output()).toContain('MUSTER_PORT=');
  // Nor is the token of an earlier service the right one.
  const token = await Bun.file(join(home.data_directory, 'administrator-token')).text();
  await Bun.write(join(folder, 'old-data', 'administrator-token'), token.trim().slice(0, -8).concat('aaaaaaaa'));
  const with_old_token = startDev({ MUSTER_DATA: join(folder, 'old-data') });
  expect(await with_old_token.exited).toBe(1);
  expect(with_old_token.output()).toContain(`Another service runs at ${home.url}`);
  expect((await fetch(`${home.url}/health/ready`)).status).toBe(200);
  one.pressCtrlC();
  expect(await one.exited).toBe(0);
  await waitFor(() => home.processes().length === 0, 'the service to end');
}, 300_000);

test.each([
  ['its terminal is closed', (terminal: ReturnType<typeof startDev>) => terminal.close()],
  ['it is killed', (terminal: ReturnType<typeof startDev>) => terminal.kill('SIGKILL')],
])(
  'dev: the service and its game servers end when %s',
  async (_, end) => {
    await Bun.write(join(folder, 'muster.yaml'), PROJECT);
    await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
    const terminal = startDev();
    await waitForOutput(terminal, 'The first version: live after');
    await findSeat(terminal.output());
    end(terminal);
    await terminal.exited;
    await waitFor(() => home.processes().length === 0, 'the service, PostgreSQL and all game servers to end');
  },
  300_000,
);

/** Returns the servers of a namespace of the game, as its developer sees them. */
async function readServers(
  namespace: string,
  game_name = 'tanks',
): Promise<{ id: string; started_at?: string; destroyed_at?: string }[]> {
  const token = (await Bun.file(join(home.data_directory, 'administrator-token')).text()).trim();
  const api = createApi(home.url);
  const { games } = await api.ok('GET', '/cloud/games', { token });
  const { game_id } = games.find(({ name_id }: { name_id: string }) => name_id === game_name);
  const { game } = await api.ok('GET', `/cloud/games/${game_id}`, { token });
  const { namespace_id } = game.namespaces.find(({ name_id }: { name_id: string }) => name_id === namespace) ?? {};
  if (namespace_id === undefined) return [];
  const path = `/games/${game_id}/environments/${namespace_id}/servers?include_destroyed=true`;
  return (await api.ok('GET', path, { token })).servers;
}

test('dev: q ends servers that wait for room and a version that is being checked; none of them starts again', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const full = startDev({ MUSTER_SERVERS_MAX: '1' });
  await waitForOutput(full, 'The first version: live after');
  await findSeat(full.output());
  await findSeat(full.output());
  const refused = findSeat(full.output()).catch(() => undefined);
  const waiting = await waitFor(
    async () => (await readServers('prod')).find((server) => !server.started_at && !server.destroyed_at),
    'a server to wait for room',
  );
  full.write('q');
  expect(await full.exited).toBe(0);
  await refused;
  await waitFor(() => home.processes().length === 0, 'everything to end');

  await Bun.write(join(folder, 'server.ts'), 'setInterval(() => {}, 1_000);');
  const stuck = startDev();
  const checked = await waitFor(
    async () => (await readServers('deploy-check').catch(() => [])).find((one) => one.started_at && !one.destroyed_at),
    'a version to be checked',
  );
  stuck.write('q');
  expect(await stuck.exited).toBe(0);
  await waitFor(() => home.processes().length === 0, 'everything to end');

  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const next = startDev();
  await waitForOutput(next, 'The first version: live after');
  const servers = [...(await readServers('prod')), ...(await readServers('deploy-check'))];
  expect(servers.find(({ id }) => id === waiting.id)).toMatchObject({ destroyed_at: expect.any(Number) });
  expect(servers.find(({ id }) => id === waiting.id)).not.toHaveProperty('started_at');
  expect(servers.find(({ id }) => id === checked.id)).toMatchObject({ destroyed_at: expect.any(Number) });
  next.write('q');
  expect(await next.exited).toBe(0);
}, 300_000);

test('dev: q ends the version that is being checked on the service of another dev', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const first = startDev();
  await waitForOutput(first, 'The first version: live after');
  const other_folder = await mkdtemp(join(tmpdir(), 'muster-dev-'));
  const idle = PROJECT.replace('{max_players: 2', '{idle_lobbies: {min: 1, max: 2}, max_players: 2');
  await Bun.write(join(other_folder, 'muster.yaml'), idle.replace('tanks', 'planes').replace('site: public\n', ''));
  await Bun.write(join(other_folder, 'server.ts'), 'setInterval(() => {}, 1_000);');
  const other = startDev({}, other_folder);
  const readCheckedServers = async () =>
    (await readServers('deploy-check', 'planes')).filter((one) => !one.destroyed_at);
  await waitFor(async () => (await readCheckedServers().catch(() => [])).length > 0, 'a version to be checked');
  other.write('q');
  expect(await other.exited).toBe(0);
  // An idle lobby would be started again.
  await waitFor(async () => (await readCheckedServers()).length === 0, 'its servers to end');
  first.write('q');
  expect(await first.exited).toBe(0);
  await rm(other_folder, { recursive: true });
}, 300_000);

test('dev: a second press of ctrl-C ends the clean-up, also if the first one was a key', async () => {
  await using checking = await startCheckWithoutAnswers();
  const { terminal } = checking;
  // While keys are read, the terminal sends no signal.
  terminal.pressCtrlC();
  // Signals within a second count as one press, and a busy machine may notice the first one late.
  await Bun.sleep(4_000);
  expect(terminal.output()).not.toContain('may still have lobbies of a check');
  const pressed_at = performance.now();
  terminal.pressCtrlC();
  await waitForOutput(terminal, 'may still have lobbies of a check');
  expect(performance.now() - pressed_at).toBeLessThan(8_000);
  expect(await terminal.exited).toBe(0);
  await waitFor(() => home.processes().length === 0, 'the service and all game servers to end');
}, 300_000);

test('dev: a failure leaves no lobby of a check on a service that goes on', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const program = await home.start();
  let is_broken = false;
  const isOfLogs = (path: string) => /^\/cloud\/games\/[^/]+\/namespaces\/[^/]+\/servers$/.test(path);
  await using proxy = await openForwardProxy({
    answerFor: ({ method, path }) =>
      is_broken && method === 'GET' && isOfLogs(path) ? { status: 200, body: '{}' } : undefined,
  });
  const terminal = startDev(through(proxy));
  await waitForOutput(terminal, 'The first version: live after');
  await Bun.write(join(folder, 'server.ts'), 'setInterval(() => {}, 1_000);');
  const isBeingChecked = async () => (await readServers('deploy-check')).some((one) => !one.destroyed_at);
  await waitFor(isBeingChecked, 'the second version to be checked');
  is_broken = true;
  // The list of servers changes, so the command reads it again.
  await findSeat(terminal.output());
  expect(await terminal.exited).not.toBe(0);
  const failed_at = performance.now();
  await waitFor(async () => !(await isBeingChecked()), 'the server of the check to end');
  // Without a clean-up, the lobby would wait for the end of the find, after 50 s.
  expect(performance.now() - failed_at).toBeLessThan(20_000);
  await program.stop('SIGINT');
}, 300_000);

test('dev: lobbies of an old version that cannot be ended keep nothing from being live', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  let is_refusing = true;
  const body = JSON.stringify({ code: 'BUSY', message: 'The service is busy.' });
  await using proxy = await openForwardProxy({
    answerFor: ({ path }) => (is_refusing && path.endsWith('/closed') ? { status: 503, body } : undefined),
  });
  const terminal = startDev(through(proxy));
  await waitForOutput(terminal, 'The first version: live after');
  const { lobby_id } = await findSeat(terminal.output());
  const seen = watchLobby(terminal.output(), lobby_id);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE.replace("'no seat'", "'no seat here'"));
  await waitForOutput(
    terminal,
    'The service is busy.\r\nThe new version is live, but lobbies of older versions go on.',
  );
  await waitForOutput(terminal, 'server.ts changed: live after');
  expect(await findSeat(terminal.output())).toMatchObject({ body: 'no seat here' });

  // The files are those of the first version again, which is no longer live.
  is_refusing = false;
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  await waitForOutput(terminal, '2 lobbies with players are closed');
  expect(await findSeat(terminal.output())).toMatchObject({ body: 'no seat' });
  expect(await seen).toEqual(['open', 'closed', 'MATCHMAKER_LOBBY_STOPPED']);
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
}, 300_000);

test('dev: q ends it also if the service does not answer', async () => {
  await using checking = await startCheckWithoutAnswers();
  const { terminal } = checking;
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).toContain('may still have lobbies of a check');
  await waitFor(() => home.processes().length === 0, 'the service and all game servers to end');
}, 300_000);

test('dev: a service that was started elsewhere is used only after a question', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT.replace('tanks', 'asked'));
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const program = await home.start();
  const token = program.administrator_token;
  const elsewhere = { MUSTER_DATA: join(folder, 'no-data'), MUSTER_TOKEN: token };
  const refusing = startDev(elsewhere);
  await waitForOutput(refusing, 'Use it? [y/N]');
  refusing.write('n\n');
  expect([await refusing.exited, refusing.output()]).toEqual([1, expect.stringContaining('Nothing was changed.')]);
  const without_terminal = Bun.spawn([...COMMAND, 'dev'], {
    cwd: folder,
    env: { ...home.environment, ...elsewhere },
    stdin: 'ignore',
    stderr: 'pipe',
  });
  const errors = await new Response(without_terminal.stderr).text();
  expect([await without_terminal.exited, errors]).toEqual([2, expect.stringContaining('muster dev --yes')]);
  const { games } = await program.api.ok('GET', '/cloud/games', { token });
  expect(games.map(({ name_id }: { name_id: string }) => name_id)).not.toContain('asked');

  const interrupted = startDev(elsewhere);
  await waitForOutput(interrupted, 'Use it? [y/N]');
  interrupted.pressCtrlC();
  expect([await interrupted.exited, interrupted.output()]).toEqual([
    130,
    expect.stringContaining('Stopped. Nothing was changed.'),
  ]);

  const using_it = startDev(elsewhere);
  await waitForOutput(using_it, 'Use it? [y/N]');
  using_it.write('y\n');
  await waitForOutput(using_it, 'The first version: live after');
  using_it.write('q');
  expect(await using_it.exited).toBe(0);
  expect((await fetch(`${home.url}/health/ready`)).status).toBe(200);
  await program.stop('SIGINT');
}, 300_000);

test('dev --json: what bots did is an event', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const terminal = openTerminal([...COMMAND, 'dev', '--no-open', '--json'], home.environment, { cwd: folder });
  await waitForOutput(terminal, '"event":"live"');
  terminal.write('b');
  // A bot has a seat.
  await waitForOutput(terminal, '"event":"log"');
  terminal.write('b');
  // Two are of the first run.
  await waitFor(() => (terminal.output().match(/has come/g)?.length ?? 0) > 2, 'a bot of the second run to play');
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.output().match(/\{"event":"bots","seats":/g)).toHaveLength(2);
}, 300_000);

test('dev --json: a correction that returns to what is live is an event, and another game is refused', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const terminal = openTerminal([...COMMAND, 'dev', '--no-open', '--json'], home.environment, { cwd: folder });
  await waitForOutput(terminal, '"event":"live"');
  await Bun.write(join(folder, 'muster.yaml'), PROJECT.replace('tanks', 'ships'));
  await waitForOutput(terminal, '"event":"failed"');
  expect(terminal.output()).toContain('names the game ships now, but this runs tanks');
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await waitForOutput(terminal, 'as before, so the version before stays live');
  const versions = [...terminal.output().matchAll(/"event":"live".*?"version_id":"([^"]+)"/g)].map(([, id]) => id);
  expect([versions.length, new Set(versions).size]).toEqual([2, 1]);
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
}, 300_000);

test.skipIf(process.getuid?.() !== 0)(
  'dev: its data directory is that of a service that is started in the folder',
  async () => {
    const own_folder = await mkdtemp(join(tmpdir(), 'muster-dev-'));
    const [config, environment] = ['config.ts', 'cli/environment.ts'].map((path) =>
      resolve(import.meta.dir, '../../src', path),
    );
    const script = `
    const { readConfig } = await import('${config}');
    const { environment } = await import('${environment}');
    console.log(JSON.stringify([environment.data_directory, readConfig().data_directory]));
  `;
    // Other users cannot enter the first one.
    const EXPECTED: [mode: number, directory: string][] = [
      [0o700, '/var/lib/muster'],
      [0o755, join(own_folder, 'muster-data')],
    ];
    for (const [mode, directory] of EXPECTED) {
      await chmod(own_folder, mode);
      const child = Bun.spawn([process.execPath, '-e', script], { cwd: own_folder, env: {}, stdout: 'pipe' });
      expect(JSON.parse(await new Response(child.stdout).text())).toEqual([directory, directory]);
    }
    await rm(own_folder, { recursive: true });
  },
);

test('dev: an answer about logs that it does not understand ends it, and its service', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const isOfLogs = (path: string) => /^\/cloud\/games\/[^/]+\/namespaces\/[^/]+\/servers$/.test(path);
  await using proxy = await openForwardProxy({
    answerFor: ({ method, path }) => (method === 'GET' && isOfLogs(path) ? { status: 200, body: '{}' } : undefined),
  });
  const terminal = startDev(through(proxy));
  expect(await terminal.exited).not.toBe(0);
  expect(terminal.output()).toContain('TypeError');
  await waitFor(() => home.processes().length === 0, 'the service, PostgreSQL and all game servers to end');
}, 300_000);

test('dev: a file that cannot be read is named, and the version before stays live until it can', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const terminal = startDev();
  await waitForOutput(terminal, 'The first version: live after');
  // The kernel lets no user read this file. One that vanishes while it is read fails in the same way.
  const unreadable = join(folder, 'public/unreadable');
  await symlink('/proc/sys/vm/compact_memory', unreadable);
  await Bun.write(join(folder, 'public/index.html'), 'the other game');
  await waitForOutput(terminal, 'The version before stays live.');
  expect(terminal.output()).toContain(`${unreadable} cannot be read or written (EACCES)`);
  await rm(unreadable);
  await Bun.write(join(folder, 'public/index.html'), 'the next game');
  await waitForOutput(terminal, 'changed: live after');
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
}, 300_000);

test('dev: what the service writes in its data directory is no change of the game', async () => {
  const own_folder = await mkdtemp(join(tmpdir(), 'muster-dev-'));
  // PostgreSQL may run as another user.
  await chmod(own_folder, 0o755);
  await Bun.write(join(own_folder, 'muster.yaml'), PROJECT.replace('site: public', 'site: .'));
  await Bun.write(join(own_folder, 'server.ts'), ROOM_SOURCE);
  const terminal = startDev({ MUSTER_DATA: join(own_folder, 'state') }, own_folder);
  await waitForOutput(terminal, 'The first version: live after');
  await findSeat(terminal.output());
  await Bun.write(join(own_folder, 'page.html'), 'a page');
  await waitForOutput(terminal, 'page.html changed: live after');
  expect(terminal.output()).not.toContain('state/');
  expect(terminal.output()).not.toContain('more changed');
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
  await rm(own_folder, { recursive: true });
}, 300_000);

test('dev: in a preview with https it prints the addresses of players, and what to make public', async () => {
  await Bun.write(join(folder, 'muster.yaml'), PROJECT);
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const port = new URL(home.url).port;
  const codespace = { CODESPACE_NAME: 'red-fox', GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN: 'app.github.dev' };
  // Its own choice of ports for game servers.
  const terminal = startDev({ ...codespace, MUSTER_SERVER_PORTS: '' });
  await waitForOutput(terminal, 'The first version: live after');
  expect(terminal.output()).toContain(`https://red-fox-${port}.app.github.dev`);
  expect(terminal.output()).toContain(`gh codespace ports visibility ${port}:public 25900:public`);
  const { server_port } = await findSeat(terminal.output());
  expect(server_port).toBeGreaterThanOrEqual(25_900);
  expect(server_port).toBeLessThan(25_920);
  // A preview may pass on its own host name.
  const answer = await fetch(`${home.url}/health/ready`, { headers: { host: `red-fox-${port}.app.github.dev` } });
  expect(answer.status).toBe(200);
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
}, 300_000);

test('dev: a verification server on this machine is called', async () => {
  const requests: string[] = [];
  const verifier = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      requests.push(new URL(request.url).pathname);
      return Response.json({});
    },
  });
  const verification = `{url: 'http://127.0.0.1:${verifier.port}/verify', headers: {}}`;
  const modes = `game_modes: {default: {actions: {find: {enabled: true, verification: ${verification}}}}}`;
  await Bun.write(join(folder, 'muster.yaml'), PROJECT.replace('{max_players: 2', `{${modes}, max_players: 2`));
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const terminal = startDev();
  await waitForOutput(terminal, 'The first version: live after');
  // The check is a find, so it was verified too.
  expect(terminal.output()).toContain('a lobby of the version was ready after');
  await findSeat(terminal.output());
  expect(requests.length).toBeGreaterThanOrEqual(2);
  expect(new Set(requests)).toEqual(new Set(['/verify']));
  terminal.write('q');
  expect(await terminal.exited).toBe(0);
  await verifier.stop(true);
}, 300_000);

test.each([
  ['http://play.example.com', 80],
  ['https://play.example.com', 443],
  ['http://[::1]:8080', 8080],
])('dev: a service at %s has port %d', (url, port) => {
  expect(portOf(new URL(url))).toBe(port);
});
