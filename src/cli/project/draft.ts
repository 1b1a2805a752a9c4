import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { exploreFolder, exposedPort, type FoundServer } from './folder.ts';
import { fitRegions, hasRegions } from './regions.ts';
import { findRivetConfig, OtherProgram, type RivetConfig, readRivetConfig } from './rivet-config.ts';

/** The content of muster.yaml, as far as the files of a folder tell. */
export interface Draft {
  content: {
    game: string;
    build?: FoundServer['build'] & { args?: Record<string, string> };
    site?: string;
    matchmaker?: Record<string, unknown>;
    cdn?: Record<string, unknown>;
  };
  /** The configuration of Rivet that it was read from, if there is one. */
  file: string | undefined;
  /** A summary of the content. */
  understood: string;
  /** What the developer should know, a sentence for each. */
  notes: string[];
  /** The key that names the server in a configuration without ports; undefined if there are ports. */
  portless_server: string | undefined;
}

interface DraftOptions {
  /** The configuration of Rivet to read, instead of the one of the folder. */
  from?: string | undefined;
}

const MAX_PLAYERS = 8;

/** Drafts muster.yaml of a folder: from a configuration of Rivet if there is one, otherwise from the files. */
export function draftProject(directory: string, { from }: DraftOptions = {}): Draft {
  const file = from === undefined ? findRivetConfig(directory) : resolve(directory, from);
  if (file === undefined) return draftFromFiles(directory);
  try {
    return draftFromRivet(directory, relative(directory, dirname(file)), readRivetConfig(file));
  } catch (error) {
    if (!(error instanceof OtherProgram) || from !== undefined) throw error;
    const draft = draftFromFiles(directory);
    return { ...draft, notes: [error.message, ...draft.notes] };
  }
}

function draftFromFiles(directory: string): Draft {
  const { game, servers, site, notes } = exploreFolder(directory);
  const [server, ...others] = servers;
  const content: Draft['content'] = {
    game,
    ...(server && { build: server.build }),
    ...(site !== undefined && { site }),
    ...(server && { matchmaker: matchmakerOf(server.port) }),
  };
  const understood = [server && `${server.what} (${pathOf(server.build)})`, site && `site ${site}`];
  return {
    content,
    file: undefined,
    understood: understood.filter(Boolean).join(', '),
    portless_server: undefined,
    notes: [...notes, ...others.map(({ what, build }) => `Not used: ${what} (${pathOf(build)})`)],
  };
}

/** Drafts muster.yaml of a folder from a configuration of Rivet in `config_folder`, a path from the first folder. */
function draftFromRivet(directory: string, config_folder: string, old: RivetConfig): Draft {
  const folder = exploreFolder(directory);
  const { build_args, config, notes, portless_server, file } = old;
  // The paths of a configuration are from its own folder.
  const fromHere = (path: string) => (isAbsolute(path) ? path : join(config_folder, path));
  const dockerfile = old.dockerfile === undefined ? undefined : fromHere(old.dockerfile);
  const site = old.site === undefined ? undefined : fromHere(old.site);
  const [server] = folder.servers;
  const build =
    dockerfile === undefined
      ? config.matchmaker && server?.build
      : {
          ...(config_folder !== '' && { path: config_folder }),
          dockerfile,
          ...(build_args && Object.keys(build_args).length > 0 && { args: build_args }),
        };
  const matchmaker =
    portless_server === undefined
      ? config.matchmaker
      : matchmakerOf(exposedPort(resolve(directory, dockerfile ?? fromHere('Dockerfile'))));
  const content: Draft['content'] = {
    game: folder.game,
    ...(build && { build }),
    ...(site !== undefined && { site }),
    ...(matchmaker && { matchmaker }),
    ...(config.cdn && { cdn: config.cdn }),
  };
  return { content, file, understood: describe(content), notes, portless_server };
}

/** Returns a draft without the regions that a service does not have, with a note about those. */
export function fitDraft(draft: Draft, regions: Parameters<typeof fitRegions>[1]): Draft {
  const { matchmaker, ...others } = draft.content;
  if (!matchmaker) return draft;
  const { config, foreign } = fitRegions({ matchmaker }, regions);
  const left_out = `regions left out, because no --region NAME=NAME_HERE names them: ${foreign.join(', ')}`;
  const note = hasRegions(config.matchmaker)
    ? left_out
    : `${left_out}; lobbies then start in all regions of the service`;
  return {
    ...draft,
    content: { ...others, ...config },
    notes: foreign.length > 0 ? [...draft.notes, note] : draft.notes,
  };
}

function matchmakerOf(port: FoundServer['port']) {
  return { max_players: MAX_PLAYERS, docker: { ports: { game: port } } };
}

function pathOf({ path, command, dockerfile }: FoundServer['build']): string {
  if (dockerfile !== undefined) return dockerfile;
  return command === undefined ? (path ?? '') : join(path ?? '', command[0] ?? '');
}

/** Returns a summary such as `2 game modes, port game 7777/udp, site public`. */
function describe({ build, site, matchmaker }: Draft['content']): string {
  type Ports = Record<string, { port?: number; port_range?: { min: number; max: number }; protocol?: string }>;
  const { game_modes = {}, docker } = (matchmaker ?? {}) as {
    game_modes?: Record<string, { docker?: { ports?: Ports } }>;
    docker?: { ports?: Ports };
  };
  const names = Object.keys(game_modes);
  const ports = Object.assign(
    {},
    docker?.ports,
    ...Object.values(game_modes).map((mode) => mode.docker?.ports),
  ) as Ports;
  const shown = Object.entries(ports).map(([label, { port, port_range, protocol = 'https' }]) => {
    const number = port_range ? `${port_range.min}–${port_range.max}` : port;
    return `port ${label} ${number}/${protocol}`;
  });
  return [
    ...(names.length > 0 ? [`${names.length} game mode${names.length > 1 ? 's' : ''}`] : []),
    ...shown,
    ...(build ? [`server ${pathOf(build)}`] : []),
    ...(site === undefined ? [] : [`site ${site === '.' ? basename(process.cwd()) : site}`]),
  ].join(', ');
}
