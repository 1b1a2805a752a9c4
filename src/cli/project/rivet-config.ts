import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { isRecord } from '../is-record.ts';
import { parseConfigFile } from './config-file.ts';
import { keyProblems } from './key-problems.ts';

type Fields = Record<string, unknown>;

/** The files of Rivet's command line, the newest form first. */
const FILES = ['rivet.json', 'rivet.yaml', 'rivet.yml', 'rivet.toml', 'rivet.version.toml'];
const BUILDS = 'builds';
const MODULES = 'modules';
/** Keys that are read and mean nothing to Muster. */
const UNUSED = ['engine', 'scripts', 'kv', 'identity'];
const KEYS = ['matchmaker', 'cdn', BUILDS, MODULES, ...UNUSED];
/** The command in Rivet's templates for a site that needs no build. */
const NO_COMMAND = /^\s*(echo\b.*)?$/;

/** A file of another program, with the name of a configuration of Rivet. */
export class OtherProgram extends Failure {}

/** A configuration of Rivet, in Muster's words. */
export interface RivetConfig {
  /** The name of the file. */
  file: string;
  dockerfile: string | undefined;
  build_args: Record<string, string> | undefined;
  /** The directory of the static site. */
  site: string | undefined;
  /** The version's configuration, in the shapes of the API. */
  config: Record<string, Fields>;
  /** The key that names the server, in a file without ports and game modes. */
  portless_server: string | undefined;
  /** What was left out, a sentence for each. */
  notes: string[];
}

/** Returns the path of the directory's configuration of Rivet; undefined if there is none. */
export function findRivetConfig(directory: string): string | undefined {
  return FILES.map((name) => join(directory, name)).find((file) => existsSync(file));
}

/**
 * Reads a configuration of Rivet in any of its forms since 2022. Throws OtherProgram, or a Failure if the file is empty or
 * has a key without a counterpart.
 */
export function readRivetConfig(file: string): RivetConfig {
  return translate(parseConfigFile(file), basename(file));
}

function translate(value: unknown, file: string): RivetConfig {
  const found: RivetConfig = {
    file,
    dockerfile: undefined,
    build_args: undefined,
    site: undefined,
    config: {},
    portless_server: undefined,
    notes: [],
  };
  const content = fieldsOf(value, file, 'the file');
  const keys = Object.keys(content);
  const known = keys.filter((key) => KEYS.includes(key));
  if (keys.length > 0 && known.length === 0) {
    throw new OtherProgram(`${file} belongs to another program: it has ${keys.join(', ')}.`, EXIT.wrong_use);
  }
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) {
    refuse(file, unknown.join(', '), `${unknown.length === 1 ? 'is not a key' : 'are not keys'} of Rivet or Muster`);
  }
  if (content.modules !== undefined) takeModules(content.modules, found);
  if (content.builds !== undefined) takeBuilds(content.builds, found);
  if (content.matchmaker !== undefined) takeMatchmaker(content.matchmaker, found);
  if (content.cdn !== undefined) takeSite(content.cdn, found);
  noteUnused(content, found);
  const { config, dockerfile, site } = found;
  if (Object.keys(config).length === 0 && dockerfile === undefined && site === undefined) {
    const names = keys.length === 0 ? '' : ` (nothing to host in ${keys.join(', ')})`;
    throw new Failure(`${file} is empty${names}: it needs "matchmaker" or "cdn".`, EXIT.wrong_use);
  }
  const [problem] = keyProblems({ game: 'game', ...config });
  if (problem !== undefined) throw new Failure(`${file}: ${problem}.`, EXIT.wrong_use);
  return found;
}

/** Takes the form of 2023, which is that of the API. */
function takeMatchmaker(value: unknown, found: RivetConfig): void {
  const { docker, game_modes, lobby_groups, ...others } = fieldsOf(value, found.file, 'matchmaker');
  if (lobby_groups !== undefined)
    refuse(found.file, 'matchmaker.lobby_groups', 'is older than game modes: write matchmaker.game_modes');
  const general = docker === undefined ? undefined : takeDocker(docker, 'matchmaker.docker', found);
  const modes = Object.entries(fieldsOf(game_modes ?? {}, found.file, 'matchmaker.game_modes')).map(([name, mode]) => {
    const key = `matchmaker.game_modes.${name}`;
    const { docker: own, ...rest } = fieldsOf(mode, found.file, key);
    const taken = own === undefined ? undefined : takeDocker(own, `${key}.docker`, found);
    return [name, { ...rest, ...(taken && { docker: taken }) }] as const;
  });
  const matchmaker = {
    ...others,
    ...(modes.length > 0 && { game_modes: Object.fromEntries(modes) }),
    ...(general && { docker: general }),
  };
  if (Object.keys(matchmaker).length > 0) found.config.matchmaker = matchmaker;
}

/** Takes a server: the Dockerfile becomes the build, and ports of 2022 get today's names. */
function takeDocker(value: unknown, key: string, found: RivetConfig): Fields {
  const { dockerfile, build_args, image, env, ports, network_mode, ...others } = fieldsOf(value, found.file, key);
  if (image !== undefined)
    refuse(found.file, `${key}.image`, 'names an image of a registry, which is not fetched: name a dockerfile');
  if (dockerfile !== undefined) takeDockerfile(String(dockerfile), `${key}.dockerfile`, found);
  if (build_args !== undefined) found.build_args = texts(fieldsOf(build_args, found.file, `${key}.build_args`));
  const given = Object.entries(fieldsOf(ports ?? {}, found.file, `${key}.ports`)).map(
    ([label, port]) => [label, takePort(fieldsOf(port, found.file, `${key}.ports.${label}`))] as const,
  );
  // Only the machine's own network has port ranges.
  const mode = network_mode ?? (given.some(([, { port_range }]) => port_range !== undefined) ? 'host' : undefined);
  return {
    ...others,
    ...(env !== undefined && { env: texts(fieldsOf(env, found.file, `${key}.env`)) }),
    ...(mode !== undefined && { network_mode: mode }),
    ...(given.length > 0 && { ports: Object.fromEntries(given) }),
  };
}

function takeDockerfile(dockerfile: string, key: string, found: RivetConfig): void {
  if (found.dockerfile !== undefined && found.dockerfile !== dockerfile) {
    refuse(found.file, key, `is ${dockerfile}, but another key names ${found.dockerfile}: a deploy has one build`);
  }
  found.dockerfile = dockerfile;
}

/** Takes a port: `proto`, `target` and `range` are the names of 2022. */
function takePort({ proto, target, range, ...others }: Fields): Fields {
  return {
    ...(proto !== undefined && { protocol: proto }),
    ...(target !== undefined && { port: target }),
    ...(range !== undefined && { port_range: range, proxy: 'none' }),
    ...others,
  };
}

function takeSite(value: unknown, found: RivetConfig): void {
  const { build_command, build_output, build_env, ...others } = fieldsOf(value, found.file, 'cdn');
  if (build_output !== undefined) found.site = String(build_output).replace(/^\.\/|\/+$/g, '') || '.';
  if (typeof build_command === 'string' && !NO_COMMAND.test(build_command)) {
    found.notes.push(`cdn.build_command is not run: run "${build_command}" before a deploy`);
  }
  if (isRecord(build_env) && Object.keys(build_env).length > 0) {
    found.notes.push(`cdn.build_env is not used: set ${Object.keys(build_env).join(', ')} when you build the site`);
  }
  if (Object.keys(others).length > 0) found.config.cdn = others;
}

/** Takes the form of 2024, which names builds and nothing else. */
function takeBuilds(value: unknown, found: RivetConfig): void {
  const [[name, build] = [], second] = Object.entries(fieldsOf(value, found.file, BUILDS));
  if (name === undefined) return;
  const key = `${BUILDS}.${name}`;
  if (second) refuse(found.file, `${BUILDS}.${second[0]}`, `is a build beside ${key}, but a deploy has one build`);
  const { dockerfile, build_args, ...others } = fieldsOf(build, found.file, key);
  if (dockerfile === undefined) refuse(found.file, `${key}.dockerfile`, 'is missing');
  takeDockerfile(String(dockerfile), `${key}.dockerfile`, found);
  if (build_args !== undefined) found.build_args = texts(fieldsOf(build_args, found.file, `${key}.build_args`));
  for (const other of Object.keys(others)) found.notes.push(`${key}.${other} means nothing here`);
  found.portless_server = key;
}

const SERVER_OF_MODULES = 'modules.lobbies.config.lobbies.backend.server';

/** Takes the form of OpenGB, whose only module with a counterpart is that of lobbies. */
function takeModules(value: unknown, found: RivetConfig): void {
  const modules = fieldsOf(value, found.file, MODULES);
  const others = Object.keys(modules).filter((name) => name !== 'lobbies');
  if (others.length > 0) found.notes.push(`modules that mean nothing here: ${others.join(', ')}`);
  const server = SERVER_OF_MODULES.split('.')
    .slice(1)
    .reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), modules);
  if (!isRecord(server)) refuse(found.file, SERVER_OF_MODULES, 'is missing, so there is no server to host');
  const lobbies = (modules.lobbies as { config: { lobbies: Fields } }).config.lobbies;
  const { ports = {}, environment = {}, ...rest } = server;
  const given = Object.entries(fieldsOf(ports, found.file, `${SERVER_OF_MODULES}.ports`)).map(([label, port]) => {
    const { internalPort, protocol } = fieldsOf(port, found.file, `${SERVER_OF_MODULES}.ports.${label}`);
    return [label, { port: internalPort, protocol }] as const;
  });
  if (given.length === 0) refuse(found.file, `${SERVER_OF_MODULES}.ports`, 'is missing: players need a port');
  const env = texts(fieldsOf(environment, found.file, `${SERVER_OF_MODULES}.environment`));
  found.config.matchmaker = {
    ...(Array.isArray(lobbies.regions) && {
      regions: Object.fromEntries(lobbies.regions.map((region) => [String(region), {}])),
    }),
    game_modes: { default: {} },
    docker: { ...(Object.keys(env).length > 0 && { env }), ports: Object.fromEntries(given) },
  };
  const unused = Object.keys(rest).filter((key) => !isNothing(rest[key]));
  for (const key of unused) {
    const advice = key === 'resources' ? ': choose a matchmaker.tier' : '';
    found.notes.push(`${SERVER_OF_MODULES}.${key} means nothing here${advice}`);
  }
}

function noteUnused(content: Fields, found: RivetConfig): void {
  const unused = UNUSED.filter((key) => !isNothing(content[key]));
  if (unused.length > 0) found.notes.push(`means nothing here: ${unused.join(', ')}`);
}

/** Returns whether a value holds nothing, such as `{ godot: {} }`. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || (isRecord(value) && Object.values(value).every(isNothing));
}

/** Returns values as texts, because an environment has no numbers. */
function texts(values: Fields): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}

function fieldsOf(value: unknown, file: string, key: string): Fields {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) refuse(file, key, 'must be a map of keys and values');
  return value;
}

function refuse(file: string, key: string, problem: string): never {
  throw new Failure(`${file}: ${key} ${problem}.`, EXIT.wrong_use);
}
