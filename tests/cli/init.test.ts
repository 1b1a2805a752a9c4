import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { draftProject } from '../../src/cli/project/draft.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-init-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** The first bytes of a program for Linux. */
const ELF = '\x7fELF\x02\x01\x01';

interface Case {
  files: Record<string, string>;
  /** Files that are executable. */
  programs?: string[];
  build?: object;
  port?: object;
  game?: string;
  site?: string;
  notes?: string[];
}

const HTTP = { port: 80, protocol: 'http' };
const GAME_PORT = { port: 7_777, protocol: 'udp' };
const GODOT = { 'project.godot': '[application]\nconfig/name="Space Race!"\n' };
const UNITY = { 'ProjectSettings/ProjectVersion.txt': 'm_EditorVersion: 6000.0.1f1\n' };

const FOLDERS: Record<string, Case> = {
  'a script, before a Dockerfile': {
    files: { 'server.ts': '', Dockerfile: 'FROM scratch\n', 'public/index.html': '' },
    build: { path: 'server.ts' },
    port: HTTP,
    site: 'public',
    notes: ['Not used: a Dockerfile (Dockerfile)'],
  },
  'the script that npm start runs, and the name of the package': {
    files: {
      'package.json': '{"name": "@studio/My Game", "scripts": {"start": "node --trace-warnings ./game/main.js"}}',
      'game/main.js': '',
      'server.js': '',
    },
    build: { path: 'game/main.js' },
    port: HTTP,
    game: 'my-game',
  },
  'the main script of a package': {
    files: { 'package.json': '{"name": "duel", "main": "./lib.mjs", "scripts": {"start": "vite"}}', 'lib.mjs': '' },
    build: { path: 'lib.mjs' },
    port: HTTP,
    game: 'duel',
  },
  'a script beside a broken package.json': {
    files: { 'package.json': '{', 'index.js': '' },
    build: { path: 'index.js' },
    port: HTTP,
  },
  'a Godot server, exported on Windows': {
    files: { ...GODOT, 'build/linux/race.x86_64': ELF, 'build/linux/race.pck': 'GDPC', 'index.js': '' },
    build: { path: 'build/linux', command: ['./race.x86_64', '--headless'] },
    port: GAME_PORT,
    game: 'space-race',
  },
  'a Godot project without a server': {
    files: { ...GODOT, 'public/index.html': '' },
    site: 'public',
    game: 'space-race',
    notes: ['This is a Godot project without a server for Linux: export one to build/'],
  },
  'a Unity server, with the libraries of its engine': {
    files: {
      ...UNITY,
      'Builds/Server/UnityPlayer.so': ELF,
      'Builds/Server/Tanks.x86_64': ELF,
      'Builds/Server/Tanks_Data/a': '',
    },
    programs: ['Builds/Server/Tanks.x86_64', 'Builds/Server/UnityPlayer.so'],
    build: { path: 'Builds/Server', command: ['./Tanks.x86_64', '-batchmode', '-nographics'] },
    port: GAME_PORT,
  },
  'a Unity project without a server': {
    files: UNITY,
    notes: ['This is a Unity project without a server for Linux'],
  },
  'a program in the folder itself, preferably one named like a server': {
    files: { tool: ELF, 'tanks-server': ELF, 'script.sh': '#!/bin/sh\n' },
    programs: ['tool', 'tanks-server', 'script.sh'],
    build: { path: '.', command: ['./tanks-server'] },
    port: HTTP,
    notes: ['The whole folder is packed; .musterignore leaves files out'],
  },
  'no program of another system, no library, and no file that cannot run': {
    files: { 'game.exe': 'MZ', 'library.so.1': ELF, stdout: ELF },
    programs: ['game.exe', 'library.so.1'],
  },
  'a Dockerfile with a port': {
    files: { Dockerfile: 'FROM debian\nRUN true\nexpose 9000/UDP 9001\n' },
    build: { dockerfile: 'Dockerfile' },
    port: { port: 9_000, protocol: 'udp' },
  },
  'a site alone': { files: { 'www/index.html': '' }, site: 'www' },
  'a name that is too long and has letters that names of games cannot have': {
    files: { 'package.json': '{"name": "Die sehr große Schlacht um den Mond"}', 'server.js': '' },
    build: { path: 'server.js' },
    port: HTTP,
    game: 'die-sehr-gro-e-schlacht',
  },
  'a name with accents': {
    files: { 'package.json': '{"name": "Ünï Jeux Été"}', 'server.js': '' },
    build: { path: 'server.js' },
    port: HTTP,
    game: 'uni-jeux-ete',
  },
};

describe('init: finds in a folder', () => {
  test.each(Object.entries(FOLDERS))('%s', async (_, { files, programs = [], build, port, site, notes = [], game }) => {
    const folder = join(await mkdtemp(join(home, 'case-')), 'tanks');
    for (const [path, content] of Object.entries(files)) await Bun.write(join(folder, path), content);
    for (const path of programs) await chmod(join(folder, path), 0o755);
    const { content, notes: found } = draftProject(folder);
    expect(content).toEqual({
      game: game ?? 'tanks',
      ...(build && { build }),
      ...(site !== undefined && { site }),
      ...(port && { matchmaker: { max_players: 8, docker: { ports: { game: port } } } }),
    });
    expect(found).toEqual(notes.map((note) => expect.stringContaining(note)));
  });
});

test('init: reads a configuration at an absolute path, and the name of a Godot project with the line ends of Windows', async () => {
  const folder = await mkdtemp(join(home, 'absolute-'));
  const from = join(home, 'elsewhere/rivet.toml');
  await Bun.write(from, '[matchmaker.docker]\r\ndockerfile = "Dockerfile"\r\nports.game.port = 80\r\n');
  expect(draftProject(folder, { from }).content.build).toEqual({
    path: '../elsewhere',
    dockerfile: '../elsewhere/Dockerfile',
  });
  await Bun.write(join(folder, 'project.godot'), '[application]\r\nconfig/name="Moon"\r\n');
  expect(draftProject(folder).content.game).toBe('moon');
});
