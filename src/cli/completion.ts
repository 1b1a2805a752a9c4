import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import { printable } from '../terminal/terminal.ts';
import { paths } from './paths.ts';
import { readProfiles } from './profiles.ts';
import { Session, type SharedOptions } from './session.ts';
import { SHELLS } from './shells.ts';

/** How long the shell may wait for the service after a press of the tab key. */
const VALUES_WITHIN_MS = 300;
const VALUES_MAX = 100;
/** Words without characters that mean something to a shell. A shell puts a suggestion into the line as it is, and names come from other people. */
const PLAIN = /^[A-Za-z0-9_.][A-Za-z0-9_.-]*$/;

type Value = [value: string, description: string];

/** Commands whose argument is read from the service. */
const LIVE: Record<string, (session: Session) => Promise<Value[]>> = {
  machines: listMachines,
  'lobbies show': listLobbies,
  'lobbies close': listLobbies,
  'lobbies delete': listLobbies,
  'servers show': listServers,
  'servers stop': listServers,
  'exports log': listServers,
  logs: listServers,
  deploy: listNamespaces,
  rollback: listNamespaces,
  'versions show': listVersions,
  'versions diff': listVersions,
};

/** Options whose value is read from the service, by their names without dashes. */
const LIVE_OPTIONS: Record<string, (session: Session) => Promise<Value[]>> = {
  game: listGames,
  namespace: listNamespaces,
  lobby: listLobbies,
  server: listServers,
  version: listVersions,
  mode: listModes,
};

/** What ends the suggestions: the shell adds names of files to them, or nothing. */
const DIRECTIVES = { files: ':0', nothing: ':4' };

/** Writes suggestions for the last, unfinished word of a command line, in the form that the shell's script reads. */
export async function suggest(program: Command, words: string[]): Promise<void> {
  const known_here = listHere(words);
  if (known_here) {
    for (const value of known_here.values)
      if (PLAIN.test(value) && value.startsWith(words.at(-1) ?? '')) console.log(value);
    console.log(known_here.directive);
    return;
  }
  // The library adds its own command of this name.
  const commands = program.commands as Command[];
  const own = commands.findIndex((command) => command.name() === 'complete');
  if (own !== -1) commands.splice(own, 1);
  const root = tab(program);
  const [, option = ''] = /^--(.+)$/.exec(words.at(-2) ?? '') ?? [];
  const readOption = LIVE_OPTIONS[option];
  const [name, readArgument] = Object.entries(LIVE).find(([one]) => words.join(' ').startsWith(`${one} `)) ?? [];
  const read = readOption ?? readArgument;
  const values = read ? await readInTime(read, readSharedOptions(words)) : [];
  const handler = (complete: (value: string, description: string) => void) => {
    for (const [value, description] of values) if (PLAIN.test(value)) complete(value, printable(description));
  };
  if (readOption) {
    for (const command of root.commands.values()) {
      const known = command.options.get(option);
      // The library takes options for switches unless they have values to suggest.
      if (known) Object.assign(known, { handler, isBoolean: false });
    }
  } else if (name !== undefined) {
    for (const argument of root.commands.get(name)?.arguments.values() ?? []) argument.handler = handler;
  }
  root.parse(words);
}

/** Returns suggestions for the last word that need no service; undefined for any other word. */
function listHere(words: string[]): { values: string[]; directive: string } | undefined {
  const [name = '', ...args] = words;
  const is_file = (name === 'backup' || name === 'restore') && args.length === 1;
  if (is_file || (name === 'init' && words.at(-2) === '--from')) return { values: [], directive: DIRECTIVES.files };
  if (args.length !== 1 || args[0]?.startsWith('-')) return undefined;
  if (name === 'use') return { values: Object.keys(readProfiles().profiles), directive: DIRECTIVES.nothing };
  return name === 'complete' ? { values: [...SHELLS], directive: DIRECTIVES.nothing } : undefined;
}

/** Returns the options of a command line that name the service, the game and the namespace. */
function readSharedOptions(words: string[]): SharedOptions {
  const names = ['url', 'token', 'game', 'namespace'] as const;
  const given = names.flatMap((name): [string, string][] => {
    const value = words[words.indexOf(`--${name}`) + 1];
    return words.includes(`--${name}`) && value !== undefined && value !== '' && value !== '-' ? [[name, value]] : [];
  });
  return Object.fromEntries(given);
}

/** Returns values of the service; none if it refuses the caller, or does not answer in time. */
async function readInTime(read: (session: Session) => Promise<Value[]>, options: SharedOptions): Promise<Value[]> {
  const late = Bun.sleep(VALUES_WITHIN_MS).then((): Value[] => []);
  const values = Session.open(options)
    .then(read)
    .catch((): Value[] => []);
  return (await Promise.race([values, late])).slice(0, VALUES_MAX);
}

async function listLobbies(session: Session): Promise<Value[]> {
  const path = paths.runningLobbies(await session.scope());
  const { lobbies } = await session.api.get<{ lobbies: { lobby_id: string; lobby_group_name_id: string }[] }>(path);
  return lobbies.map(({ lobby_id, lobby_group_name_id }) => [lobby_id, lobby_group_name_id]);
}

async function listServers(session: Session): Promise<Value[]> {
  const path = paths.servers(await session.scope());
  const { servers } = await session.api.get<{ servers: { id: string; tags: Record<string, string> }[] }>(path);
  return servers.map(({ id, tags }) => [id, tags.lobby_id === undefined ? 'server' : `lobby ${tags.lobby_id}`]);
}

async function listNamespaces(session: Session): Promise<Value[]> {
  const { namespaces } = await session.game();
  return namespaces.map(({ name_id, display_name }) => [name_id, display_name]);
}

async function listVersions(session: Session): Promise<Value[]> {
  const { versions } = await session.game();
  return versions.map(({ display_name, version_id }) =>
    PLAIN.test(display_name) ? [display_name, version_id] : [version_id, display_name],
  );
}

async function listModes(session: Session): Promise<Value[]> {
  const { game, namespace } = await session.scope();
  const path = `/cloud/games/${game.game_id}/versions/${namespace.version_id}`;
  const { version } = await session.api.get<{ version: { config: { matchmaker?: { game_modes?: object } } } }>(path);
  return Object.keys(version.config.matchmaker?.game_modes ?? {}).map((name) => [name, 'game mode']);
}

async function listMachines({ api }: Session): Promise<Value[]> {
  const { machines } = await api.get<{ machines: { machine_id: string; host: string }[] }>('/cloud/machines');
  return machines.map(({ machine_id, host }) => [machine_id, host]);
}

async function listGames({ api }: Session): Promise<Value[]> {
  const { games } = await api.get<{ games: { name_id: string; display_name: string }[] }>('/cloud/games');
  return games.map(({ name_id, display_name }) => [name_id, display_name]);
}
