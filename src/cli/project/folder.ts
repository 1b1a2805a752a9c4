import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { GAME_LENGTH_MAX } from './project-shape.ts';

/** Names of a server's script, the likeliest first. */
const SCRIPTS = ['server.ts', 'server.js', 'room.ts', 'index.ts', 'index.js', 'src/server.ts', 'src/index.ts'];
const SITES = ['public', 'dist', 'www'];
/** Where engines and compilers put a server, the likeliest first. */
const PROGRAM_DIRECTORIES = ['.', 'server', 'build', 'builds', 'Build', 'Builds', 'export', 'exports', 'bin', 'dist'];
const ELF = Buffer.from('\x7fELF');
/** The port of an engine's server unless its files tell another: the examples of the engines use it. */
const ENGINE_PORT = { port: 7_777, protocol: 'udp' };
const SCRIPT_PORT = { port: 80, protocol: 'http' };

export interface FoundServer {
  /** For example `a Godot server`. */
  what: string;
  build: { path?: string; command?: string[]; dockerfile?: string };
  port: { port: number; protocol: string };
}

/** What the files of a folder without a configuration tell about a game. */
export interface Folder {
  game: string;
  /** The likeliest first. */
  servers: FoundServer[];
  site: string | undefined;
  /** What the developer should know, a sentence for each. */
  notes: string[];
}

/** Finds the servers and the site of a folder, and the name of the game. */
export function exploreFolder(directory: string): Folder {
  const notes: string[] = [];
  const manifest = readManifest(directory);
  const has = (name: string) => existsSync(join(directory, name));
  const engine = has('project.godot') ? 'Godot' : has('ProjectSettings/ProjectVersion.txt') ? 'Unity' : undefined;
  const program = findProgram(directory);
  const scripts = [...scriptsOf(manifest), ...SCRIPTS].filter((name) => /\.[cm]?[jt]s$/.test(name) && has(name));
  const script = engine === undefined ? scripts[0] : undefined;
  const servers: FoundServer[] = [
    ...(script === undefined ? [] : [{ what: 'a script', build: { path: script }, port: SCRIPT_PORT }]),
    ...(program ? [toServer(program, engine)] : []),
    ...(has('Dockerfile')
      ? [
          {
            what: 'a Dockerfile',
            build: { dockerfile: 'Dockerfile' },
            port: exposedPort(join(directory, 'Dockerfile')),
          },
        ]
      : []),
  ];
  if (engine !== undefined && !program) {
    notes.push(
      `This is a ${engine} project without a server for Linux: export one to build/, then run "muster init" again`,
    );
  }
  if (program?.directory === '.') notes.push('The whole folder is packed; .musterignore leaves files out');
  const name = manifest?.name ?? nameOfGodot(directory) ?? basename(resolve(directory));
  return { game: toGameName(name), servers, site: SITES.find((one) => has(`${one}/index.html`)), notes };
}

interface Manifest {
  name: string | undefined;
  main: string | undefined;
  start: string | undefined;
}

/** Reads package.json; undefined without a valid one. */
function readManifest(directory: string): Manifest | undefined {
  try {
    const content = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
    return { name: text(content.name), main: text(content.main), start: text(content.scripts?.start) };
  } catch {
    return undefined;
  }
}

/** Returns the scripts that a package names: the one that `npm start` runs, and its main one. */
function scriptsOf(manifest: Manifest | undefined): string[] {
  const started = manifest?.start?.split(/\s+/).find((word) => /\.[cm]?[jt]s$/.test(word));
  return [started, manifest?.main].filter((name) => name !== undefined).map((name) => name.replace(/^\.\//, ''));
}

/** Returns the first port that a Dockerfile exposes; without one, the port of a script. */
export function exposedPort(dockerfile: string): FoundServer['port'] {
  if (!existsSync(dockerfile)) return SCRIPT_PORT;
  const [, port, protocol] = /^EXPOSE\s+(\d+)(?:\/(\w+))?/im.exec(readFileSync(dockerfile, 'utf8')) ?? [];
  if (port === undefined) return SCRIPT_PORT;
  return { port: Number(port), protocol: protocol?.toLowerCase() === 'udp' ? 'udp' : 'http' };
}

interface Program {
  /** From the folder. */
  directory: string;
  name: string;
  kind: 'Godot' | 'Unity' | undefined;
}

/** Finds a program for Linux, in the folder itself or where engines and compilers put one. */
function findProgram(directory: string): Program | undefined {
  for (const first of PROGRAM_DIRECTORIES) {
    for (const below of [first, ...subfoldersOf(directory, first)]) {
      const names = filesOf(join(directory, below));
      const programs = names.filter((name) => isProgram(join(directory, below, name)));
      const [name] = programs.toSorted((one, other) => likelihood(other) - likelihood(one));
      if (name === undefined) continue;
      const stem = name.replace(/\.(x86_64|arm64)$/, '');
      const is_unity = existsSync(join(directory, below, `${stem}_Data`));
      const is_godot = !is_unity && (names.includes(`${stem}.pck`) || existsSync(join(directory, 'project.godot')));
      return { directory: below, name, kind: is_unity ? 'Unity' : is_godot ? 'Godot' : undefined };
    }
  }
  return undefined;
}

function toServer({ directory, name, kind }: Program, engine: string | undefined): FoundServer {
  const of_engine = kind ?? engine;
  const headless = { Godot: ['--headless'], Unity: ['-batchmode', '-nographics'] }[of_engine ?? ''] ?? [];
  return {
    what: of_engine === undefined ? 'a program' : `a ${of_engine} server`,
    build: { path: directory, command: [`./${name}`, ...headless] },
    port: of_engine === undefined ? SCRIPT_PORT : ENGINE_PORT,
  };
}

/** Ranks programs by name, because libraries begin with the same bytes. */
function likelihood(name: string): number {
  return (/server/i.test(name) ? 2 : 0) + (/\.(x86_64|arm64)$/.test(name) ? 1 : 0);
}

function isProgram(file: string): boolean {
  if (/\.(so(\.\d+)*|o|a|node|debug)$/.test(file)) return false;
  const facts = statSync(file, { throwIfNoEntry: false });
  // A server that an engine exported on Windows becomes executable when it is packed.
  if (!facts?.isFile() || ((facts.mode & 0o111) === 0 && !/\.(x86_64|arm64)$/.test(file))) return false;
  const first = Buffer.alloc(ELF.length);
  const opened = openSync(file, 'r');
  try {
    readSync(opened, first, 0, first.length, 0);
  } finally {
    closeSync(opened);
  }
  return first.equals(ELF);
}

function filesOf(directory: string): string[] {
  return isDirectory(directory) ? readdirSync(directory).toSorted() : [];
}

function subfoldersOf(directory: string, below: string): string[] {
  if (below === '.' || !isDirectory(join(directory, below))) return [];
  const entries = readdirSync(join(directory, below), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(below, name))
    .toSorted();
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function nameOfGodot(directory: string): string | undefined {
  const file = join(directory, 'project.godot');
  return existsSync(file) ? /^config\/name="(.+)"\r?$/m.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
}

/** Returns a name that muster.yaml accepts: `@studio/My Gäme!` becomes `my-game`. */
function toGameName(name: string): string {
  const without_accents = name.normalize('NFKD').replace(/\p{M}/gu, '');
  const words = without_accents.replace(/^@[^/]*\//, '').toLowerCase();
  const dashed = words.replace(/[^a-z0-9]+/g, '-').slice(0, GAME_LENGTH_MAX);
  return dashed.replace(/^-+|-+$/g, '') || 'game';
}
