import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeGame } from '../support/game.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { readToEnd } from '../support/processes.ts';
import { COMMAND } from '../support/program.ts';
import { shareService } from '../support/suite.ts';
import { openTerminal, waitForOutput } from '../support/terminal.ts';

/** Writes what it was started with, and fails. */
const SPY = `#!/bin/sh
{ echo "$@"; env; } >>"$HOME/spied"
exit 1
`;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-login-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

const environment = () => ({
  PATH: `${join(home, 'bin')}:${process.env.PATH}`,
  HOME: home,
  XDG_CONFIG_HOME: join(home, 'config'),
});

test('login: a link is completed by a person who sees the same code, and the token is kept for this user alone', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const url = muster.config.public_url;
  const umask = process.umask(0);
  const terminal = openTerminal([...COMMAND, 'login', url], environment(), { cwd: home });
  process.umask(umask);
  await waitForOutput(terminal, '/link/');
  const [, code] = /the code ([A-Z2-9-]{9})/.exec(terminal.output()) ?? [];
  const [link = ''] = /http\S+\/link\/\S+/.exec(terminal.output()) ?? [];
  expect(link.length).toBeLessThan(80);
  const page = await fetch(link);
  expect(await page.text()).toContain(`<p class="code">${code}</p>`);
  const device_link_token = page.url.slice(page.url.lastIndexOf('/') + 1);
  await muster.api.ok('POST', '/cloud/devices/links/complete', {
    token: muster.administrator_token,
    body: { device_link_token, game_id: game.game_id },
  });
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).toContain(`Logged in to ${url} for the game `);

  const directory = join(home, 'config/muster');
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  for (const name of await readdir(directory)) expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
  const who = Bun.spawn([...COMMAND, 'whoami', '--json'], { cwd: home, env: environment() });
  expect(JSON.parse(await new Response(who.stdout).text()).agent).toEqual({ game_cloud: { game_id: game.game_id } });
}, 300_000);

test('login: no program that a command starts gets the token, neither in its environment nor in its arguments', async () => {
  await Bun.write(join(home, 'bin/docker'), SPY);
  await chmod(join(home, 'bin/docker'), 0o755);
  await Bun.write(join(home, 'muster.yaml'), 'game: spied\nbuild: {dockerfile: Dockerfile}\n');
  await Bun.write(join(home, 'Dockerfile'), 'FROM scratch\n');
  const env = { ...environment(), MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: muster.administrator_token };
  const child = Bun.spawn([...COMMAND, 'deploy'], { cwd: home, env, stdout: 'ignore', stderr: 'ignore' });
  await child.exited;
  const spied = await Bun.file(join(home, 'spied')).text();
  expect(spied).toStartWith('version\n');
  expect(spied).toContain(`MUSTER_URL=${muster.config.public_url}`);
  expect(spied).not.toContain(muster.administrator_token);
  await rm(join(home, 'muster.yaml'));
}, 300_000);

/** Runs a command as a user with profiles of their own, with text on its standard input. */
async function run(user: string, args: string[], { stdin = '', env = {} }: { stdin?: string; env?: object } = {}) {
  const own = { ...environment(), XDG_CONFIG_HOME: join(home, user), ...env };
  const child = Bun.spawn([...COMMAND, ...args], {
    cwd: home,
    env: own,
    stdin: new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return await readToEnd(child);
}

/** A service of another operator, which records the tokens that it gets. */
function openOtherService() {
  const tokens: (string | null)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      tokens.push(request.headers.get('authorization'));
      return Response.json({ agent: { identity: { identity_id: 'other' } } });
    },
  });
  return { tokens, url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

test('login: --url and MUSTER_URL name the service before the profile does, and no other gets the token', async () => {
  await using other = openOtherService();
  const url = muster.config.public_url;
  expect(await run('one', ['use', 'here', '--url', other.url, '--game', 'tanks'])).toMatchObject({ exit_code: 0 });
  const token = { stdin: `${muster.administrator_token}\n` };
  const WAYS: [args: string[], env: object][] = [
    [['login', '--url', url, '--token', '-'], {}],
    [['login', '--token', '-'], { MUSTER_URL: url }],
    [['login', url, '--token', '-'], { MUSTER_URL: other.url }],
  ];
  for (const [args, env] of WAYS) {
    expect(await run('one', ['use', 'here', '--url', other.url])).toMatchObject({ exit_code: 0 });
    const done = await run('one', args, { ...token, env });
    const stderr = `Logged in to ${url}, and using it instead of here.\n`;
    expect([args, done]).toEqual([args, { exit_code: 0, stdout: '', stderr }]);
    // The profile of the other service stays.
    const profiles = await Bun.file(join(home, 'one/muster/profiles.json')).json();
    const here = { url: other.url, game: 'tanks' };
    expect(profiles).toEqual({ current: url, profiles: { here, [url]: { url } } });
  }
  expect(other.tokens).toEqual([]);
  const two = await run('one', ['login', url, '--url', other.url, '--token', '-'], token);
  expect([two.exit_code, two.stderr]).toEqual([2, expect.stringContaining('Name one service')]);
}, 300_000);

/** An address that leads to another one, as that of http to that of https. Records the tokens that it gets. */
function openRedirect(target: string) {
  const tokens: (string | null)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      tokens.push(request.headers.get('authorization'));
      const { pathname, search } = new URL(request.url);
      return Response.redirect(target + pathname + search, 301);
    },
  });
  return { tokens, url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

test('login: an address that leads to that of the service gets no token, and the right one is named', async () => {
  const url = muster.config.public_url;
  await using redirect = openRedirect(url);
  const refused = await run('eight', ['login', redirect.url, '--token', '-'], { stdin: muster.administrator_token });
  expect([refused.exit_code, refused.stderr]).toEqual([
    1,
    `The service is at ${url}: use that address (muster login ${url}, --url or MUSTER_URL).\n`,
  ]);
  expect(redirect.tokens).toEqual([null]);
  // A change is not sent on as a read.
  const env = { MUSTER_TOKEN: muster.administrator_token };
  const change = await run('eight', ['api', 'POST', '/hub/links', '--data', '{}', '--url', redirect.url], { env });
  expect([change.exit_code, change.stderr]).toEqual([1, refused.stderr]);
}, 300_000);

test('open: an address that is no web page is refused', async () => {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => Response.json({ url: 'file:///etc/passwd', expire_ts: '', games: [] }),
  });
  const { exit_code, stdout, stderr } = await run('nine', ['open', '--url', `http://127.0.0.1:${server.port}`]);
  await server.stop(true);
  expect([exit_code, stdout, stderr]).toEqual([
    1,
    '',
    'The service answered with file:///etc/passwd, which is not a web address.\n',
  ]);
}, 300_000);

test('login: without a terminal it needs a token, which MUSTER_TOKEN may be', async () => {
  const url = muster.config.public_url;
  const done = await run('three', ['login', url]);
  expect([done.exit_code, done.stderr]).toEqual([2, expect.stringContaining('--token -')]);
  const env = { MUSTER_TOKEN: muster.administrator_token };
  expect(await run('three', ['login', url], { env })).toMatchObject({ exit_code: 0, stderr: `Logged in to ${url}.\n` });
  expect(await run('three', ['status', '--game', 'none'])).toMatchObject({ exit_code: 4 });
}, 300_000);

test('login: a token of another service in a data directory is named, and the login goes on without it', async () => {
  const url = muster.config.public_url;
  await Bun.write(join(home, 'old-data/administrator-token'), 'an old token');
  const env = { MUSTER_PORT: new URL(url).port, MUSTER_DATA: join(home, 'old-data') };
  const { exit_code, stderr } = await run('eleven', ['login'], { env });
  expect([exit_code, stderr]).toEqual([2, expect.stringContaining('pass one by "muster login')]);
  expect(stderr).toContain(`The token in ${home}/old-data/administrator-token is not of the service at ${url}.`);
}, 300_000);

test('login: the token of an old service in a data directory does not hide that of the service', async () => {
  const url = muster.config.public_url;
  await Bun.write(join(home, 'old-data/administrator-token'), 'an old token');
  await Bun.write(join(home, 'muster-data/administrator-token'), muster.administrator_token);
  const env = { MUSTER_PORT: new URL(url).port, MUSTER_DATA: join(home, 'old-data') };
  const { exit_code, stderr } = await run('twelve', ['login'], { env });
  await rm(join(home, 'muster-data'), { recursive: true });
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining(`Logged in to ${url}.\n`)]);
}, 300_000);

test('login: a refused token is named, without the advice to log in', async () => {
  const url = muster.config.public_url;
  const refused = await run('six', ['login', url, '--token', '-'], { stdin: 'wrong' });
  expect([refused.exit_code, refused.stderr]).toEqual([3, expect.stringContaining(`${url} refused the token`)]);
  expect(refused.stderr).not.toContain('muster login');
  expect(await Bun.file(join(home, 'six/muster/credentials.json')).exists()).toBe(false);
}, 300_000);

test('login: a refused MUSTER_TOKEN or --token is named, and no login is advised that would take it again', async () => {
  const url = muster.config.public_url;
  const env = { MUSTER_TOKEN: 'wrong' };
  const REFUSED: [args: string[], env: object, advice: string][] = [
    [['status', '--url', url], env, `replace it, or unset it and log in: muster login ${url}\n`],
    [['login', url], env, `${url} refused the token of MUSTER_TOKEN: `],
    [['status', '--url', url, '--token', 'wrong'], {}, 'This is the token of --token: pass another one.\n'],
  ];
  for (const [args, variables, advice] of REFUSED) {
    const { exit_code, stderr } = await run('thirteen', args, { env: variables });
    expect([args, exit_code, stderr]).toEqual([args, 3, expect.stringContaining(advice)]);
  }
  const { stdout } = await run('thirteen', ['doctor', '--json', '--url', url], { env });
  const found = JSON.parse(stdout).findings.find(({ advice }: { advice: string }) => advice.includes('MUSTER_TOKEN'));
  expect(found.what).not.toContain('MUSTER_TOKEN');
}, 300_000);

test('login: a token that is not one line of visible signs is refused before it is sent', async () => {
  const url = muster.config.public_url;
  const cut = `${muster.administrator_token.slice(0, 40)}\n${muster.administrator_token.slice(40)}`;
  const WRONG: [args: string[], run: { stdin?: string; env?: object }, name: string][] = [
    [['status', '--url', url], { env: { MUSTER_TOKEN: cut } }, 'MUSTER_TOKEN'],
    [['status', '--url', url, '--token', '-'], { stdin: cut }, '--token'],
    [['login', url, '--token', 'tök'], {}, '--token'],
  ];
  for (const [args, options, name] of WRONG) {
    const { exit_code, stderr } = await run('fourteen', args, options);
    expect([args, exit_code, stderr]).toEqual([
      args,
      2,
      expect.stringContaining(`The token of ${name} has a line break`),
    ]);
  }
  const env = { MUSTER_TOKEN: ` ${muster.administrator_token}\n` };
  expect(await run('fourteen', ['whoami', '--url', url], { env })).toMatchObject({ exit_code: 0 });
}, 300_000);

test('login: the logins for two games of a service are both kept, and commands take that of their game', async () => {
  const url = muster.config.public_url;
  const [one, other] = [
    await makeGame(muster.api, muster.administrator_token),
    await makeGame(muster.api, muster.administrator_token),
  ];
  const nameOf = async ({ game_id }: { game_id: string }) =>
    (await muster.api.ok('GET', `/cloud/games/${game_id}`, { token: muster.administrator_token })).game.name_id;
  const names = [await nameOf(one), await nameOf(other)];
  for (const [index, { cloud_token }] of [one, other].entries()) {
    const { stderr } = await run('fifteen', ['login', url, '--token', '-'], { stdin: cloud_token });
    expect(stderr).toBe(`Logged in to ${url} for the game ${names[index]}.\n`);
  }
  const statusOf = (...args: string[]) => run('fifteen', ['status', '--json', ...args]);
  for (const game of [names[0] ?? '', one.game_id, names[1] ?? '']) {
    expect([game, await statusOf('--game', game)]).toEqual([game, expect.objectContaining({ exit_code: 0 })]);
  }
  // Without a game, the latest login counts.
  expect(JSON.parse((await statusOf()).stdout).game).toBe(names[1]);
  const third = await statusOf('--game', 'third');
  expect([third.exit_code, third.stderr]).toEqual([
    4,
    expect.stringContaining(
      `Your token is of the game ${names[1]}, and cannot be used for third. If third exists, log in for`,
    ),
  ]);
  // The token of a person is for all games.
  await run('fifteen', ['login', url, '--token', '-'], { stdin: muster.administrator_token });
  expect(Object.values(await Bun.file(join(home, 'fifteen/muster/credentials.json')).json())).toEqual([
    [{ token: muster.administrator_token }],
  ]);
}, 300_000);

test('login: the token that an older release kept is still read', async () => {
  const url = muster.config.public_url;
  await Bun.write(join(home, 'sixteen/muster/credentials.json'), JSON.stringify({ [url]: muster.administrator_token }));
  expect(await run('sixteen', ['whoami', '--url', url])).toMatchObject({ exit_code: 0 });
}, 300_000);

test('login: localhost and 127.0.0.1 are one service of this machine', async () => {
  const url = muster.config.public_url;
  const named = url.replace('127.0.0.1', 'localhost');
  expect(named).not.toBe(url);
  await Bun.write(join(home, 'own-data/administrator-token'), muster.administrator_token);
  const env = { MUSTER_PORT: new URL(url).port, MUSTER_DATA: join(home, 'own-data') };
  expect(await run('seventeen', ['whoami', '--url', named], { env })).toMatchObject({ exit_code: 0 });
  expect(await run('seventeen', ['login', named], { env })).toMatchObject({ exit_code: 0 });
  expect(await run('seventeen', ['whoami', '--url', url])).toMatchObject({ exit_code: 0 });
}, 300_000);

test('logout: says that there was no login, and with which token commands go on', async () => {
  const url = muster.config.public_url;
  await Bun.write(join(home, 'own-data/administrator-token'), muster.administrator_token);
  const env = { MUSTER_PORT: new URL(url).port, MUSTER_DATA: join(home, 'own-data') };
  await run('eighteen', ['login', url], { env });
  expect((await run('eighteen', ['logout', '--url', url], { env })).stderr).toBe(
    `Logged out of ${url}.\nCommands here go on with the token of ${home}/own-data/administrator-token.\n`,
  );
  expect((await run('eighteen', ['logout', '--url', url])).stderr).toBe(`You were not logged in to ${url}.\n`);
  const with_variable = await run('eighteen', ['logout', '--url', url], { env: { MUSTER_TOKEN: 'any' } });
  expect(with_variable.stderr).toContain('Commands here go on with the token of MUSTER_TOKEN.\n');
  await run('eighteen', ['login', url], { env });
  const with_broken = await run('eighteen', ['logout', '--url', url], { env: { MUSTER_TOKEN: 'a b' } });
  expect([with_broken.exit_code, with_broken.stderr]).toEqual([0, expect.stringContaining(`Logged out of ${url}.`)]);
}, 300_000);

test('profiles: a file that was damaged by hand is named', async () => {
  for (const damaged of ['x', 'null', '{"profiles":null}', '{"profiles":{"a":{"url":1}}}']) {
    await Bun.write(join(home, 'nineteen/muster/profiles.json'), damaged);
    const { exit_code, stderr } = await run('nineteen', ['status']);
    expect([damaged, exit_code, stderr]).toEqual([
      damaged,
      2,
      expect.stringContaining('profiles.json is damaged: correct it'),
    ]);
  }
}, 300_000);

test('use: names the known profiles and the command that creates one, and takes no token', async () => {
  const unknown = await run('twenty', ['use', 'foo']);
  expect([unknown.exit_code, unknown.stderr]).toEqual([
    4,
    'There is no profile "foo". Create it: muster use foo --url ADDRESS\n',
  ]);
  const with_token = await run('twenty', ['use', 'foo', '--url', 'https://play.example.com', '--token', 'abc']);
  expect([with_token.exit_code, with_token.stderr]).toEqual([2, expect.stringContaining('leave out --token')]);
}, 300_000);

test('use: says which service, game and namespace the next commands have', async () => {
  const place = ['--url', 'https://play.example.com', '--game', 'tanks', '--namespace', 'staging'];
  const { stderr } = await run('seven', ['use', 'play', ...place]);
  expect(stderr).toBe('Using play: https://play.example.com, game tanks, namespace staging.\n');
}, 300_000);

test('use: with the address of another service, a profile has no game and namespace of the one before', async () => {
  await run('ten', ['use', 'play', '--url', 'https://one.example.com', '--game', 'tanks', '--namespace', 'staging']);
  const same = await run('ten', ['use', 'play', '--url', 'https://one.example.com', '--game', 'ships']);
  expect(same.stderr).toBe('Using play: https://one.example.com, game ships, namespace staging.\n');
  const other = await run('ten', ['use', 'play', '--url', 'https://two.example.com']);
  expect(other.stderr).toBe('Using play: https://two.example.com.\n');
}, 300_000);

test('use: a wrong address is refused and not stored', async () => {
  const done = await run('two', ['use', 'bad', '--url', 'nowhere']);
  expect([done.exit_code, done.stderr]).toEqual([2, expect.stringContaining('"nowhere" is not an address such as')]);
  expect(await Bun.file(join(home, 'two/muster/profiles.json')).exists()).toBe(false);
}, 300_000);

test('whoami: shows the service of the caller, and a profile only if it is of that service', async () => {
  const url = muster.config.public_url;
  const nowhere = `http://127.0.0.1:${findFreePort()}`;
  const env = { MUSTER_TOKEN: muster.administrator_token };
  await run('four', ['use', 'elsewhere', '--url', nowhere, '--game', 'tanks']);
  const other = JSON.parse((await run('four', ['whoami', '--url', url, '--json'], { env })).stdout);
  expect(other).toEqual({ url, agent: expect.any(Object) });
  await run('four', ['use', 'here', '--url', url, '--game', 'tanks']);
  const own = JSON.parse((await run('four', ['whoami', '--json'], { env })).stdout);
  expect(own).toEqual({ url, agent: expect.any(Object), profile: 'here', game: 'tanks' });
}, 300_000);
