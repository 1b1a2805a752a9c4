import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { type Draft, draftProject, fitDraft } from '../../src/cli/project/draft.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';

const FIXTURES = resolve(import.meta.dir, 'fixtures');

const muster = shareService();
let game: TestGame;
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-shapes-'));
  game = await makeGame(muster.api, muster.administrator_token);
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

/** The summary of each configuration, and its notes. */
const UNDERSTOOD: Record<string, [understood: string, ...notes: string[]]> = {
  'yaml-godot': ['1 game mode, port default 10567/udp, server Dockerfile'],
  'yaml-godot-regions': ['1 game mode, port default 10567/udp, server Dockerfile', 'lnd-sfo, lnd-fra'],
  'yaml-scripts': [
    '1 game mode, port backend 4100/https, port server 5100/udp, server games/boxes/Dockerfile, site site',
    'cdn.build_command is not run: run "rm -rf site && npm ci && npm run build"',
    'means nothing here: scripts',
    'atl, fra',
  ],
  'yaml-tcp': ['1 game mode, port default 9000/tcp, server Dockerfile', 'lax, fra'],
  'yaml-number': ['2 game modes, port default 5050/https, site public', 'cdn.build_command', 'lnd-atl, lnd-fra'],
  'yaml-actions': ['2 game modes, port default 8080/https, server Dockerfile, site out', 'cdn.build_command'],
  'toml-template': ['1 game mode, port default 1300/https, server Dockerfile, site static', 'lnd-atl'],
  'toml-unity': ['1 game mode, port default 7777/https, server Dockerfile', 'lnd-sfo, lnd-fra'],
  'toml-two-modes': [
    '2 game modes, port default 5200/https, server Dockerfile, site public',
    'cdn.build_command',
    'means nothing here: identity',
    'lnd-atl, lnd-fra',
  ],
  'toml-actions': [
    '2 game modes, port default 8080/https, server Dockerfile, site out',
    'cdn.build_command',
    'lnd-atl',
  ],
  'json-godot': ['1 game mode, port default 10567/udp, server Dockerfile'],
  'json-godot-server': ['1 game mode, port default 10567/udp, server server/Dockerfile'],
  'json-builds': ['port game 80/http, server server/Dockerfile'],
  'json-modules': [
    '1 game mode, port game 7777/udp',
    'rate_limit, tokens, rivet',
    'server.resources means nothing here: choose a matchmaker.tier',
    'lax',
  ],
  'version-site': ['1 game mode, port default 8080/https, server Dockerfile, site views/assets', 'lnd-sfo, lnd-fra'],
  'version-static': ['1 game mode, port default 8800/https, server Dockerfile, site StaticPage', 'lnd-atl, lnd-fra'],
  'version-small': ['1 game mode, port default 1300/https, server Dockerfile, site StaticPage', 'lnd-atl'],
  'version-no-protocol': ['1 game mode, port default 1300/https, server Dockerfile, site frontend', 'lnd-atl'],
  'version-echo': ['1 game mode, port default 1301/https, server Dockerfile, site StaticPage', 'lnd-atl, lnd-fra'],
  'version-port': ['1 game mode, port default 2100/https, server Dockerfile, site StaticPage', 'lnd-fra, lnd-atl'],
  'version-fork': ['1 game mode, port default 6700/https, server Dockerfile, site StaticPage', 'lnd-fra'],
  'version-npm': [
    '1 game mode, port default 3000/https, server Dockerfile, site dist',
    'cdn.build_command is not run: run "npm install && npm run build:client"',
    'lnd-sfo, lnd-fra',
  ],
  'version-rooms': ['1 game mode, port default 2567/https, server Dockerfile, site dist', 'lnd-sfo, lnd-fra'],
  'version-eight-modes': ['8 game modes, port default 2567/https, server Dockerfile, site static', 'lnd-sfo, lnd-fra'],
  'version-range': ['1 game mode, port signaling 80/https, port media 26000–26999/udp'],
  'version-env-per-mode': ['2 game modes, port https 80/https'],
};

describe('a configuration of Rivet is understood and accepted by the service:', () => {
  test('every fixture is in the table', async () => {
    expect(Object.keys(UNDERSTOOD).toSorted()).toEqual((await readdir(FIXTURES)).toSorted());
  });

  test.each(Object.entries(UNDERSTOOD))('%s', async (name, [understood, ...notes]) => {
    const draft = fitDraft(draftProject(join(FIXTURES, name)), { known: [], renamed: {} });
    expect(draft.understood).toBe(understood);
    expect(draft.notes).toEqual(notes.map((note) => expect.stringContaining(note)));
    expect(draft.content.game).toBe(name);
    expect(await problemsOf(draft.content)).toEqual([]);
  });
});

test('a note says that lobbies start in all regions only if the configuration keeps none', () => {
  const notesWith = (renamed: Record<string, string>) =>
    fitDraft(draftProject(join(FIXTURES, 'toml-unity')), { known: [], renamed }).notes;
  expect(notesWith({})).toEqual([expect.stringMatching(/: lnd-.*; lobbies then start in all regions of the service$/)]);
  expect(notesWith({ 'lnd-fra': 'local' })).toEqual([expect.stringMatching(/names them: lnd-sfo$/)]);
});

/** Returns the problems that the service finds, except the missing ids of uploads. */
async function problemsOf({ matchmaker, cdn }: Draft['content']): Promise<string[]> {
  const config = {
    ...(matchmaker && { matchmaker: { game_modes: { default: {} }, ...matchmaker } }),
    ...(cdn && { cdn }),
  };
  const body = { display_name: 'check', config };
  const path = `/cloud/games/${game.game_id}/versions/validate`;
  const { errors } = await muster.api.ok('POST', path, { body, token: game.cloud_token });
  const problems = errors.map(({ path: parts }: { path: string[] }) => parts.join('.'));
  return problems.filter((problem: string) => !problem.endsWith('.no-build'));
}

test('a configuration of Rivet keeps what has a counterpart', () => {
  const contentOf = (name: string) => draftProject(join(FIXTURES, name)).content;
  expect(contentOf('yaml-actions')).toEqual({
    game: 'yaml-actions',
    build: { dockerfile: 'Dockerfile' },
    site: 'out',
    matchmaker: {
      max_players: 100,
      tier: 'basic-1d8',
      idle_lobbies: { min: 0, max: 1 },
      game_modes: {
        default: { taggable: true, allow_dynamic_max_players: true },
        custom: {
          taggable: true,
          allow_dynamic_max_players: true,
          idle_lobbies: { min: 0, max: 0 },
          actions: { create: { enabled: true } },
        },
      },
      docker: { ports: { default: { port: 8080, protocol: 'https' } } },
    },
  });
  expect(contentOf('yaml-number').matchmaker?.docker).toEqual({
    env: { PORT: '5050', DEBUG: 'false' },
    ports: { default: { port: 5050 } },
  });
  expect(contentOf('version-range').matchmaker?.game_modes).toEqual({
    default: {
      tier: 'basic-1d2',
      max_players: 32,
      docker: {
        network_mode: 'host',
        ports: {
          signaling: { port: 80, protocol: 'https' },
          media: { port_range: { min: 26_000, max: 26_999 }, protocol: 'udp', proxy: 'none' },
        },
      },
    },
  });
  expect(contentOf('json-modules').matchmaker).toEqual({
    regions: { lax: {} },
    game_modes: { default: {} },
    docker: { env: { BIND_ADDRESS: '0.0.0.0' }, ports: { game: { port: 7_777, protocol: 'udp' } } },
  });
});

test('a configuration is refused with a sentence that names the file and the key', async () => {
  const REFUSED: [file: string, text: string, message: string][] = [
    ['rivet.yaml', '', 'rivet.yaml is empty: it needs "matchmaker" or "cdn".'],
    ['rivet.toml', '[kv]\n[identity]\n[cdn]\n', 'rivet.toml is empty (nothing to host in kv, identity, cdn)'],
    ['rivet.json', '{"builds": {}}', 'rivet.json is empty (nothing to host in builds)'],
    ['rivet.json', '{"builds": {"a": {"image": "x"}}}', 'rivet.json: builds.a.dockerfile is missing.'],
    [
      'rivet.json',
      '{"builds": {"a": {"dockerfile": "A"}, "b": {"dockerfile": "B"}}}',
      'rivet.json: builds.b is a build beside builds.a',
    ],
    [
      'rivet.json',
      '{"modules": {"tokens": {}}}',
      'rivet.json: modules.lobbies.config.lobbies.backend.server is missing, so there is no server',
    ],
    ['rivet.yaml', 'artifacts: []\nsource: x\n', 'rivet.yaml belongs to another program: it has artifacts, source.'],
    ['rivet.json', '{"actors": {}, "sandbox": {}}', 'rivet.json belongs to another program: it has actors, sandbox.'],
    ['rivet.yaml', 'matchmaker: {}\nmatchmakr: {}\n', 'rivet.yaml: matchmakr is not a key of Rivet or Muster.'],
    ['rivet.yaml', 'matchmaker:\n  max_players: 2\nmatchmaker:\n  tier: x\n', 'Map keys must be unique at line 3'],
    ['rivet.toml', '[matchmaker]\n[matchmaker]\n', '2:  [matchmaker]'],
    ['rivet.json', '{"matchmaker": {"max_players": 1, "max_players": 2}}', 'Map keys must be unique at line 1'],
    ['rivet.yaml', 'matchmaker: [1]\n', 'rivet.yaml: matchmaker must be a map of keys and values.'],
    ['rivet.yaml', 'matchmaker:\n  lobby_groups: []\n', 'matchmaker.lobby_groups is older than game modes'],
    ['rivet.yaml', 'matchmaker:\n  docker:\n    image: a/b\n', 'matchmaker.docker.image names an image of a registry'],
    ['rivet.yaml', 'matchmaker:\n  max_playes: 8\n', 'matchmaker.max_playes is unknown; did you mean max_players?'],
    [
      'rivet.yaml',
      'matchmaker:\n  docker:\n    ports:\n      a: {port: x}\n',
      'rivet.yaml: matchmaker.docker.ports.a.port must be integer.',
    ],
    [
      'rivet.yaml',
      'matchmaker:\n  docker: {dockerfile: A}\n  game_modes: {b: {docker: {dockerfile: B}}}\n',
      'matchmaker.game_modes.b.docker.dockerfile is B, but another key names A: a deploy has one build',
    ],
  ];
  for (const [index, [file, text, message]] of REFUSED.entries()) {
    const folder = join(home, `refused-${index}`);
    await Bun.write(join(folder, file), text);
    expect(() => draftProject(folder, { from: file }), text).toThrow(message);
  }
});

/** Makes a folder with the files of a fixture, and with more files. */
async function makeFolder(name: string, fixture: string | undefined, files: Record<string, string> = {}) {
  if (fixture !== undefined) await cp(join(FIXTURES, fixture), join(home, name), { recursive: true });
  return await makeProjectFolder(muster, home, { name, files });
}

const readYaml = async (folder: string) => parse(await Bun.file(join(folder, 'muster.yaml')).text());

test('init: writes muster.yaml from a configuration of Rivet, with the regions that have a name here', async () => {
  const { folder, run } = await makeFolder('translated', 'toml-unity', { Dockerfile: 'FROM scratch\n' });
  expect(await run('init', '--region', 'lnd-fra=local')).toEqual({
    exit_code: 0,
    stdout: '',
    stderr: [
      'note     regions left out, because no --region NAME=NAME_HERE names them: lnd-sfo',
      'read     rivet.toml: 1 game mode, port default 7777/https, server Dockerfile',
      'Wrote muster.yaml. Next: muster deploy',
      '',
    ].join('\n'),
  });
  expect(await readYaml(folder)).toEqual({
    game: 'translated',
    build: { dockerfile: 'Dockerfile' },
    matchmaker: {
      max_players: 24,
      tier: 'basic-1d1',
      game_modes: { default: {} },
      regions: { local: {} },
      docker: { ports: { default: { port: 7_777, protocol: 'https' } } },
    },
  });
  expect((await run('config', 'check')).exit_code).toBe(0);
  expect(await run('init', '--region', 'lnd-fra')).toMatchObject({ exit_code: 2 });
}, 300_000);

test('init: a configuration without ports gets those of its Dockerfile, and a deploy without init is refused', async () => {
  const { folder, run } = await makeFolder('ported', 'json-builds', {
    'server/Dockerfile': 'FROM scratch\nEXPOSE 9000/udp\n',
  });
  const refused = await run('deploy', '--dry-run');
  expect([refused.exit_code, refused.stderr]).toEqual([2, expect.stringContaining('builds.game has no ports')]);
  const { stderr } = await run('init');
  expect(stderr).toContain('rivet.json has no ports (builds.game): check matchmaker.docker.ports');
  expect((await readYaml(folder)).matchmaker.docker.ports).toEqual({ game: { port: 9_000, protocol: 'udp' } });
}, 300_000);

test('init --from: paths of a configuration in another folder are from that folder', async () => {
  const other = {
    'rivet.json': JSON.stringify({
      builds: { game: { dockerfile: './server/Dockerfile' } },
      cdn: { build_output: './dist' },
    }),
    'server/Dockerfile': 'FROM scratch\nEXPOSE 9000/udp\n',
    'dist/index.html': 'the game',
  };
  await makeFolder('elsewhere', undefined, other);
  const { folder, run } = await makeFolder('here', undefined, { 'readme.txt': '' });
  expect(await run('init', '--from', '../elsewhere/rivet.json')).toMatchObject({ exit_code: 0 });
  expect(await readYaml(folder)).toMatchObject({
    game: 'here',
    build: { path: '../elsewhere', dockerfile: '../elsewhere/server/Dockerfile' },
    site: '../elsewhere/dist',
    matchmaker: { docker: { ports: { game: { port: 9_000, protocol: 'udp' } } } },
  });
  expect(await run('config', 'check')).toMatchObject({ exit_code: 0 });
}, 300_000);

test("init: another program's rivet.yaml is noted, and the files of the folder are used", async () => {
  const { folder, run } = await makeFolder('foreign', undefined, { 'rivet.yaml': 'artifacts: [x]\n', 'server.ts': '' });
  const refused = await run('deploy');
  expect([refused.exit_code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('another program: it has artifacts'),
  ]);
  const { stderr } = await run('init');
  expect(stderr).toContain('note     rivet.yaml belongs to another program: it has artifacts.');
  expect((await readYaml(folder)).build).toEqual({ path: 'server.ts' });
}, 300_000);

test('deploy: puts a configuration of Rivet live as it is, with the server of the folder', async () => {
  const { folder, run } = await makeFolder('unchanged', 'version-env-per-mode');
  const none = await run('deploy');
  expect([none.exit_code, none.stderr]).toEqual([2, expect.stringContaining('Run "muster init", and add "build"')]);
  // The mode's own port has the name https.
  await Bun.write(join(folder, 'server.ts'), ROOM_SOURCE.replaceAll('PORT_game', 'PORT_https'));
  const deployed = await run('deploy');
  expect(deployed.stderr).toContain('read rivet.version.toml: 2 game modes, port https 80/https, server server.ts');
  expect(deployed.exit_code).toBe(0);
  const status = JSON.parse((await run('status', '--game', 'unchanged', '--json')).stdout);
  expect(status.version.display_name).not.toBe('0.0.1');
}, 300_000);
