import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import Ajv from 'ajv';
import { sql } from 'drizzle-orm';
import { parse } from 'yaml';
import { makeGame } from '../support/game.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';

/** A server that ends before its lobby is ready. */
const BROKEN = `console.log('it begins'); setTimeout(() => process.exit(7), 200);`;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-deploy-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

const makeFolder = (name: string, files: Record<string, string> = {}) =>
  makeProjectFolder(muster, home, { name, files });

const readProject = (folder: string) => Bun.file(join(folder, 'muster.yaml')).text();

test('deploy: refuses a folder without muster.yaml, wrong keys, and missing files', async () => {
  const WRONG: [text: string, message: string][] = [
    ['build: {path: server.ts}', 'muster.yaml: game is missing.'],
    ['', 'muster.yaml is empty'],
    ['{}', 'muster.yaml is empty'],
    ['- game', 'muster.yaml: the file must be object'],
    [
      'game: Tanks\nbuild: {path: server.ts}',
      'game is "Tanks", which is invalid. The name of the game: at most 24 lowercase letters',
    ],
    ['game: tanks\nbuild: {path: server.ts}\nbiuld: x', 'muster.yaml: biuld is unknown; did you mean build?'],
    ['game: tanks\nsite: x\nmatchmakr: {max_players: 8}', 'matchmakr is unknown; did you mean matchmaker?'],
    [
      'game: tanks\nsite: x\nmatchmaker: {max_playes: 8}',
      'matchmaker.max_playes is unknown; did you mean max_players?',
    ],
    ['game: tanks\nsite: x\nmatchmaker: {max_players: many}', 'matchmaker.max_players must be integer'],
    [
      'game: tanks\nsite: x\nmatchmaker: {docker: {ports: {game: {protocol: ftp}}}}',
      'matchmaker.docker.ports.game.protocol is "ftp", but must be one of http, https,',
    ],
    ['game: tanks\nsite: x\nmatchmaker: {docker: {dockerfile: D}}', 'matchmaker.docker.dockerfile has no use here'],
    ['game: tanks\nsite: x\ncdn: {build_output: dist}', 'cdn.build_output has no use here: name the directory as site'],
    ['game: tanks\nbuild: {path: server.ts, kind: js}', 'build.kind is unknown; the keys are path, command'],
    [
      'game: tanks\nsite: x\nmatchmaker: {max_players: 8}',
      'muster.yaml names no server for its matchmaker. Add "build".',
    ],
    ['game: tanks\nbuild: {path: ., args: {A: b}}', 'build.args are those of a build.dockerfile'],
    ['game: tanks\nbuild: {path: ., platform: linux/amd64}', 'build.platform is that of a build.dockerfile'],
    ['game: tanks\nbuild: {dockerfile: D, isolation: container}', 'build.isolation is that of a directory'],
    [
      'game: tanks\nbuild: {path: ., isolation: full}',
      'build.isolation is "full", but must be one of process, container.',
    ],
    ['game: tanks\nbuild: server.ts', 'build is "server.ts", but must be a map: write build: { path: server.ts }.'],
    ['game: tanks\nsite: x\nmatchmaker: {max_players: 300}', 'matchmaker.max_players must be <= 256.'],
    ['game: tanks\nbuild: {command: [./server]}', 'build.path is missing'],
    ['game: tanks', 'neither "build" nor "site"'],
    ['game: tanks\ngame: other\nsite: public', 'Map keys must be unique'],
    ['game: ][', 'muster.yaml: '],
  ];
  const { folder, run } = await makeFolder('wrong', { 'readme.txt': '' });
  expect(await run('deploy')).toMatchObject({ exit_code: 2, stderr: expect.stringContaining('muster init') });
  for (const [text, message] of WRONG) {
    await Bun.write(join(folder, 'muster.yaml'), text);
    const refused = [text, { exit_code: 2, stdout: '', stderr: expect.stringContaining(message) }];
    expect([text, await run('config', 'check')]).toEqual(refused);
  }
  for (const [text, message] of WRONG.slice(0, 2)) {
    await Bun.write(join(folder, 'muster.yaml'), text);
    const refused = [text, { exit_code: 2, stdout: '', stderr: expect.stringContaining(message) }];
    expect([text, await run('deploy')]).toEqual(refused);
  }
  await Bun.write(join(folder, 'muster.yaml'), 'game: tanks\nbuild: {path: missing.ts}');
  expect(await run('deploy')).toMatchObject({ exit_code: 4, stderr: expect.stringContaining('missing.ts') });
  expect(await run('config', 'check')).toMatchObject({ exit_code: 4, stderr: expect.stringContaining('missing.ts') });
  await Bun.write(join(folder, 'muster.yaml'), 'game: tanks\nsite: readme.txt');
  await rm(join(folder, 'muster.yaml'));
  await mkdir(join(folder, 'muster.yaml'));
  expect(await run('deploy')).toMatchObject({ exit_code: 2, stderr: 'muster.yaml: is a directory, not a file\n' });
}, 300_000);

test('deploy, config check, dev: refuse files that cannot be deployed as the configuration says, before anything is created', async () => {
  const WRONG: [text: string, message: string][] = [
    ['site: readme.txt', 'site is readme.txt, which is not a directory.'],
    ['site: empty', 'site is empty, which has no files to deploy.'],
    ['build: {path: .}', 'build.path is a directory: say in build.command which program of it to run.'],
    ['build: {path: empty, command: [a]}', 'build.path is empty, which has no files to deploy.'],
    ['build: {path: srv.c}', 'build.path is srv.c, but a file must be a script that ends in .js'],
    ['build: {path: server.ts, command: [a]}', 'build.path is one script, which is run itself: remove build.command.'],
    ['build: {path: server.ts, isolation: container}', 'build.path is one script, which has no build.isolation'],
    ['build: {path: server.ts, dockerfile: Dockerfile}', 'build.path is server.ts, which is not a directory.'],
  ];
  const files = { 'readme.txt': '', 'srv.c': '', 'server.ts': '', Dockerfile: '' };
  const { folder, run } = await makeFolder('unfit', files);
  await mkdir(join(folder, 'empty'));
  for (const [text, message] of WRONG) {
    await Bun.write(join(folder, 'muster.yaml'), `game: unfit\n${text}`);
    const refused = { exit_code: 2, stdout: '', stderr: expect.stringContaining(`muster.yaml: ${message}`) };
    expect([text, await run('config', 'check')]).toEqual([text, refused]);
  }
  for (const command of ['deploy', 'dev']) expect(await run(command)).toMatchObject({ exit_code: 2 });
  const { games } = JSON.parse((await run('api', 'GET', '/cloud/games')).stdout);
  expect(games.map(({ name_id }: { name_id: string }) => name_id)).not.toContain('unfit');
}, 300_000);

test('deploy: names wrong regions and tiers with those of the service, and a used name before it uploads', async () => {
  const project =
    'game: named\nbuild: {path: server.ts}\nmatchmaker: {REGIONS docker: {ports: {game: {port: 80, protocol: http}}}}';
  const { folder, run } = await makeFolder('named', { 'server.ts': ROOM_SOURCE });
  await Bun.write(join(folder, 'muster.yaml'), project.replace('REGIONS', 'regions: {mars: {tier: huge}},'));
  const refused = await run('deploy');
  expect(refused.exit_code).toBe(1);
  expect(refused.stderr).toContain('the service has no region "mars" (in regions of the game mode default); it has: ');
  expect(refused.stderr).toContain('in the region mars is unknown; the tiers are: basic-1d16, ');
  await Bun.write(join(folder, 'muster.yaml'), project.replace('REGIONS', ''));
  expect(await run('deploy', '--message', 'one two')).toMatchObject({ exit_code: 0 });
  await Bun.write(join(folder, 'server.ts'), `${ROOM_SOURCE}\n// changed`);
  const used = await run('deploy', '--message', 'one two');
  expect([used.exit_code, used.stderr]).toEqual([
    2,
    'The game has a version "one two" already. Choose another --message, or put the namespace on that version: muster deploy prod --version "one two"\n',
  ]);
  const again = await run('deploy', '--version', 'one two');
  expect([again.exit_code, again.stdout]).toEqual([0, 'named prod: one two is live already\n']);
  expect(again.stderr).not.toContain('To undo');
}, 300_000);

test('deploy --region: is refused beside muster.yaml, whose regions have the names of the service', async () => {
  const { run } = await makeFolder('renaming', {
    'public/index.html': 'the game',
    'muster.yaml': 'game: renaming\nsite: public',
  });
  for (const how of [[], ['--dry-run']]) {
    const { exit_code, stderr } = await run('deploy', ...how, '--region', 'lnd-fra=local');
    expect([exit_code, stderr]).toEqual([2, expect.stringContaining('but this folder has muster.yaml')]);
  }
  expect((await run('status', '--game', 'renaming')).exit_code).toBe(4);
}, 300_000);

test('config: a valid file is accepted and shown, and fits the schema that editors read', async () => {
  const yaml =
    'game: right\nsite: public\nbuild: {path: server.ts}\nmatchmaker:\n  game_modes:\n    default:\n  docker: {ports: {a: {port: 80}}}\n';
  const { run } = await makeFolder('right', { 'muster.yaml': yaml, 'server.ts': '', 'public/a.html': '' });
  expect(await run('config', 'check')).toEqual({
    exit_code: 0,
    stderr: '',
    stdout: 'muster.yaml is valid: game right, server server.ts, site public\n',
  });
  const shown = parse((await run('config', 'show')).stdout);
  expect(shown.matchmaker).toEqual({ game_modes: { default: {} }, docker: { ports: { a: { port: 80 } } } });
  expect(JSON.parse((await run('config', 'show', '--json')).stdout)).toEqual(shown);
  const validate = new Ajv({ formats: { uuid: true } }).compile(JSON.parse((await run('config', 'schema')).stdout));
  expect([validate(shown), validate({ ...shown, matchmakr: {} })]).toEqual([true, false]);
}, 300_000);

test('deploy: with the token of one game, another game is refused with what to do', async () => {
  const { cloud_token } = await makeGame(muster.api, muster.administrator_token);
  const files = { 'public/index.html': 'the game', 'muster.yaml': 'game: another\nsite: public' };
  const { run } = await makeFolder('of-another', files);
  for (const how of [[], ['--dry-run']]) {
    const { exit_code, stdout, stderr } = await run('deploy', '--token', cloud_token, ...how);
    expect([exit_code, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(
      /^Your token is of the game \S+, and cannot be used for another\. If another exists, pass a token of it with --token\. To create/,
    );
  }
}, 300_000);

test('deploy --dry-run: says what would be done, and changes nothing', async () => {
  const { folder, run, start, liveVersion } = await makeFolder('dry', {
    'muster.yaml':
      'game: dry\nsite: public\nbuild: {path: server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}',
    'public/index.html': 'the game',
  });
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  const builds = async () => (await muster.database.queries.execute(sql`select 1 from builds`)).length;
  const sites = async () => (await muster.database.queries.execute(sql`select 1 from sites`)).length;
  const before = [await builds(), await sites()];
  const first = await run('deploy', '--dry-run');
  expect(first.exit_code).toBe(0);
  expect(first.stderr).toMatch(
    /game {5}dry would be new\nbuild {4}server\.ts, [\d.]+ kB: would be sent\nsite {5}1 files: would be/,
  );
  expect((await run('status', '--game', 'dry')).exit_code).toBe(4);
  // As for all commands, MUSTER_GAME comes before the game of the folder, and --game before both.
  const gameOf = async (args: string[]) => {
    const child = start(['deploy', '--dry-run', '--json', ...args], { MUSTER_GAME: 'named' });
    return JSON.parse(await new Response(child.stdout).text()).game;
  };
  expect([await gameOf([]), await gameOf(['--game', 'given'])]).toEqual(['named', 'given']);
  expect([await builds(), await sites()]).toEqual(before);

  expect((await run('deploy', '--message', 'the first')).exit_code).toBe(0);
  const deployed = [await builds(), await sites()];
  expect((await run('deploy', '--dry-run')).stderr).toContain('build    the same as server.ts');
  await Bun.write(join(folder, 'server.ts'), BROKEN);
  const changed = await run('deploy', '--dry-run', '--json');
  expect(changed.stderr).toContain('build    server.ts, 0.1 kB: would be sent');
  expect(JSON.parse(changed.stdout)).toEqual({ dry_run: true, game: 'dry', namespace: 'prod' });
  expect([await builds(), await sites()]).toEqual(deployed);
  expect(await liveVersion()).toBe('the first');
  await Bun.write(join(folder, 'muster.yaml'), 'game: dry\nbuild: {path: server.ts}\nmatchmaker: {tier: huge}');
  const refused = await run('deploy', '--dry-run');
  expect([refused.exit_code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('in the region local is unknown; the tiers are: basic-1d16'),
  ]);
}, 300_000);

test('deploy: files that usually hold secrets are left out, unless .musterignore says otherwise', async () => {
  const { run } = await makeFolder('secretive', {
    // As if written on Windows, it is not executable.
    'game/run.sh': '#!/bin/sh\nfind . -type f | sort; exit 1',
    'game/.env': 'x',
    'game/certs/tls.key': 'x',
    'game/certs/tls.pem': 'x',
    'game/.musterignore': '!*.pem\n',
    'muster.yaml': 'game: secretive\nbuild: {path: game, command: [./run.sh]}',
  });
  const { stderr } = await run('deploy');
  expect(stderr).toContain('secrets  left out: .env, certs/tls.key (');
  expect(stderr).toContain('  ./certs/tls.pem\n  ./run.sh\n');
}, 300_000);

test('deploy: isolation is asked for, and refused where the service has no image for it', async () => {
  const { folder, run } = await makeFolder('isolated', {
    'game/run.sh': '#!/bin/sh\nexit 1',
    'server.ts': '',
    'muster.yaml': 'game: isolated\nbuild: {path: game, command: [./run.sh], isolation: container}',
  });
  const refused = await run('deploy');
  expect([refused.exit_code, refused.stderr]).toEqual([1, expect.stringContaining('BUILDS_KIND_NOT_AVAILABLE')]);
  expect(refused.stderr).toContain('archive in a container');
  await Bun.write(join(folder, 'muster.yaml'), 'game: isolated\nbuild: {path: server.ts, isolation: process}');
  expect(await run('deploy')).toMatchObject({ exit_code: 2, stderr: expect.stringContaining('name a directory') });
}, 300_000);

test('init and deploy: a folder with a server and a site goes live, and an unchanged server is not sent again', async () => {
  const { folder, run, liveVersion } = await makeFolder('tanks', {
    'public/index.html': 'the game',
    'public/a/b.js': '1',
  });
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  expect(await run('init')).toMatchObject({
    exit_code: 0,
    stderr: 'found    a script (server.ts), site public\nWrote muster.yaml. Next: muster deploy\n',
  });
  expect(await run('init')).toMatchObject({ exit_code: 2 });
  // Editors read the schema from the service.
  const [, schema_url = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(await readProject(folder)) ?? [];
  expect(schema_url).toBe(`${muster.config.public_url}/muster.schema.json`);
  const served = await fetch(schema_url);
  expect(served.headers.get('content-type')).toStartWith('application/json');
  expect(await served.json()).toEqual(JSON.parse((await run('config', 'schema')).stdout));
  const first = await run('deploy', '--message', 'the first');
  expect(first).toMatchObject({ exit_code: 0, stdout: expect.stringContaining('→ the first') });
  expect(first.stderr).toContain('a lobby of the version was ready');
  expect(first.stderr).toContain('site     2 files');
  const second = await run('deploy', '--message', 'the second', '--json');
  expect(second.stderr).toContain('not sent again');
  expect(JSON.parse(second.stdout)).toMatchObject({ namespace: 'prod' });
  expect(await liveVersion()).toBe('the second');

  expect((await run('rollback', '--game', 'tanks')).stdout).toContain('the second → the first');
  expect(await liveVersion()).toBe('the first');
}, 300_000);

test('deploy: a version whose lobby does not become ready does not go live, and the log of its server is shown', async () => {
  const { folder, run, liveVersion } = await makeFolder('breaking', {
    'muster.yaml': 'game: breaking\nbuild: {path: server.ts}',
  });
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  await Bun.write(
    join(folder, 'muster.yaml'),
    'game: breaking\nbuild: {path: server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}',
  );
  expect(await run('deploy', '--message', 'good')).toMatchObject({ exit_code: 0 });
  await Bun.write(join(folder, 'server.ts'), BROKEN);
  const broken = await run('deploy', '--message', 'broken');
  expect(broken.exit_code).toBe(1);
  expect(broken.stderr).toContain('  it begins\n  [muster] the server ended with exit code 7\n');
  expect(await liveVersion()).toBe('good');
}, 300_000);

test('deploy: a directory is packed with its program, without ignored files', async () => {
  const files = {
    'game/run.sh': 'ls; exit 1',
    'game/secret.env': 'x',
    'game/.musterignore': '*.env\n',
    'muster.yaml': 'game: packed\nbuild: {path: game, command: [/bin/sh, run.sh]}',
  };
  const { run } = await makeFolder('packed', files);
  const { exit_code, stderr } = await run('deploy');
  expect(exit_code).toBe(1);
  expect(stderr).toContain('  run.sh\n');
  expect(stderr).not.toContain('secret.env');
}, 300_000);

test('deploy: two deploys at the same time both succeed, and the namespace is on the version of one', async () => {
  const yaml =
    'game: twice\nbuild: {path: server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}';
  const { folder, run, liveVersion } = await makeFolder('twice', { 'muster.yaml': yaml });
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  expect(await run('deploy', '--message', 'before')).toMatchObject({ exit_code: 0 });
  const both = await Promise.all([run('deploy', '--message', 'one'), run('deploy', '--message', 'other')]);
  for (const { exit_code, stderr } of both)
    expect([exit_code, stderr]).toEqual([0, expect.stringContaining('was ready')]);
  expect(['one', 'other']).toContain(await liveVersion());
}, 300_000);

test('deploy: the first two deploys of a game at the same time create one game', async () => {
  const { folder, run } = await makeFolder('made-once', {
    'public/index.html': 'the game',
    'muster.yaml': 'game: made-once\nsite: public',
  });
  const both = await Promise.all([run('deploy', '--message', 'one'), run('deploy', '--message', 'other')]);
  for (const { exit_code, stderr } of both) expect([exit_code, stderr]).toEqual([0, expect.stringContaining('site ')]);
  const { games } = JSON.parse((await run('api', 'GET', '/cloud/games')).stdout);
  expect(games.filter((game: { display_name: string }) => game.display_name === basename(folder))).toHaveLength(1);
}, 300_000);

test('deploy: the first two checks of a game at the same time use one namespace', async () => {
  const { folder, run, liveVersion } = await makeFolder('untried', {
    'public/index.html': 'the game',
    'muster.yaml': 'game: untried\nsite: public',
  });
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE);
  expect(await run('deploy')).toMatchObject({ exit_code: 0 });
  await Bun.write(
    join(folder, 'muster.yaml'),
    'game: untried\nbuild: {path: server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}',
  );
  const both = await Promise.all([run('deploy', '--message', 'one'), run('deploy', '--message', 'other')]);
  for (const one of both) expect(one).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('was ready') });
  expect(['one', 'other']).toContain(await liveVersion());
}, 300_000);

test('deploy: a namespace that a new game would not have is refused before the game is created', async () => {
  const project = 'game: misspelt\nbuild: {path: server.ts}';
  const { run } = await makeFolder('misspelt', { 'server.ts': ROOM_SOURCE, 'muster.yaml': project });
  const { exit_code, stderr } = await run('deploy', 'stagign');
  expect([exit_code, stderr]).toEqual([4, expect.stringContaining('prod and staging, not "stagign"')]);
  expect((await run('status', '--game', 'misspelt')).stderr).toContain('There is no game "misspelt"');
}, 300_000);
