import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { EXIT, Failure, toFailure } from '../terminal/failure.ts';
import { endBy } from '../terminal/stop-signals.ts';
import { terminal } from '../terminal/terminal.ts';
import { SHELLS } from './shells.ts';

/** The headings of the groups of commands, in the order of the help. */
export const GROUPS = {
  daily: 'Daily:',
  operating: 'Inspect and operate:',
  access: 'Access:',
  raw: 'Everything else:',
};

/**
 * Runs a command that talks to a service. Returns the exit code. `machine_commands` are those for the machine of a service,
 * such as `serve`: they are suggested for a misspelt command too.
 */
export async function runClient(args: string[], machine_commands: readonly string[]): Promise<number> {
  const program = createProgram(machine_commands);
  const is_json = args.includes('--json');
  reportWrongUse(program, is_json);
  if (is_json) {
    endBy(() => {
      report(new Failure('Stopped.', EXIT.interrupted), is_json);
      process.exit(EXIT.interrupted);
    });
  }
  try {
    const [name, separator, ...words] = args;
    if (name === 'complete' && separator === '--') {
      await (await import('./completion.ts')).suggest(program, words);
      return 0;
    }
    await program.parseAsync(withGroupCommand(program, args), { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.wrong_use;
    const failure = toFailure(error);
    if (!failure) throw error;
    report(failure, is_json);
    return failure.exit_code;
  }
}

/**
 * Puts the command of a group before its options, as the parser needs it. Without a command, it is `list`:
 * `muster lobbies --json` is `muster lobbies list --json`.
 */
function withGroupCommand(program: Command, [name = '', ...rest]: string[]): string[] {
  const group = program.commands.find((command) => command.name() === name);
  const names = group?.commands.map((command) => command.name()) ?? [];
  const first = rest.findIndex((arg, index) => !arg.startsWith('-') && !needsValue(group, rest[index - 1]));
  const given = rest[first];
  if (given !== undefined && names.includes(given)) return [name, given, ...rest.toSpliced(first, 1)];
  const asks_for_help = rest.includes('-h') || rest.includes('--help');
  return given === undefined && names.includes('list') && !asks_for_help ? [name, 'list', ...rest] : [name, ...rest];
}

/** Returns whether a word is an option of a group's commands that needs a value, which is the next word. */
function needsValue(group: Command | undefined, word = ''): boolean {
  const options = group?.commands.flatMap((command) => command.options) ?? [];
  return options.some(({ required, long, short }) => required && [long, short].includes(word));
}

/** Lets the parser say how to write a command whose argument is missing, and report wrong use as JSON. */
function reportWrongUse(command: Command, is_json: boolean): void {
  const write = (text: string) => {
    if (is_json) terminal.sayFailure({ exit_code: EXIT.wrong_use, message: text.trim() });
    else process.stderr.write(text);
  };
  command.configureOutput({
    outputError: (text) =>
      write(text.includes('missing required argument') ? `${text}${describeUse(command)}\n` : text),
  });
  for (const part of command.commands) reportWrongUse(part, is_json);
}

/** Returns how a command is written, with the choices of its arguments. */
function describeUse(command: Command): string {
  const parents = command.parent?.parent ? [command.parent.name()] : [];
  const wanted = command.registeredArguments.map((argument) => {
    const what = argument.argChoices?.join('|') ?? argument.name();
    return argument.required ? `<${what}>` : `[${what}]`;
  });
  return `Usage: ${['muster', ...parents, command.name(), ...wanted].join(' ')}`;
}

function report({ message, exit_code, refusal }: Failure, is_json: boolean): void {
  if (is_json) {
    terminal.sayFailure({ exit_code, message, ...refusal });
    return;
  }
  terminal.say(message);
  if (refusal) terminal.say(`(${refusal.code}${refusal.ray_id === undefined ? '' : `, ray ${refusal.ray_id}`})`);
}

/** Creates the tree of commands. The code of each is loaded when it runs. */
export function createProgram(machine_commands: readonly string[] = []): Command {
  const program = new Command('muster')
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true });
  for (const name of machine_commands) program.command(name);
  program.hook('preAction', (_, command) => refuseEmpty(command));
  program.commandsGroup(GROUPS.daily);
  addDaily(program);
  program.commandsGroup(GROUPS.operating);
  addOperating(program);
  program.commandsGroup(GROUPS.access);
  addAccess(program);
  program.commandsGroup(GROUPS.raw);
  addRaw(program);
  return program;
}

/** Adds a command with the options of every command that talks to a service. */
function addCommand(parent: Command, usage: string, text: string): Command {
  return addServiceOptions(parent, usage, text)
    .option('--game <name>', 'the game, by name or id (MUSTER_GAME)')
    .option(
      '--namespace <name>',
      'the namespace, by name or id (MUSTER_NAMESPACE); by default that of the profile, or prod',
    );
}

/** Adds a command about a service as a whole. It takes a game and a namespace like all others, and does not use them. */
function addServiceCommand(parent: Command, usage: string, text: string): Command {
  return addServiceOptions(parent, usage, text)
    .addOption(new Option('--game <name>').hideHelp())
    .addOption(new Option('--namespace <name>').hideHelp());
}

function addServiceOptions(parent: Command, usage: string, text: string): Command {
  return parent
    .command(usage)
    .description(text)
    .option('--url <address>', 'the service (MUSTER_URL); by default that of the profile, or of this machine')
    .option('--token <token>', 'the token (MUSTER_TOKEN); - reads it from standard input')
    .option('--json', 'write JSON: one object; commands that keep running write one object per line');
}

function addDaily(program: Command): void {
  program
    .command('init')
    .description('writes muster.yaml for the game in this folder, or takes a configuration of Rivet')
    .option('--from <file>', 'the configuration to read, such as rivet.toml')
    .option('--region <theirs=here>', 'a region of that configuration and its name here; may be repeated', collectPair)
    .option('--json', 'write what it found as JSON')
    .action(async (options) => (await import('./commands/init.ts')).init(options));
  program
    .command('dev')
    .description('runs the game of this folder on this machine, and applies each change of its files')
    .option('--no-open', 'open no browser')
    .option('--yes', 'use a service that runs here already, without asking')
    .option('--json', 'write each event as a line of JSON')
    .action(async (options) => (await import('./commands/dev.ts')).dev(options));
  addCommand(program, 'deploy [namespace]', 'uploads the game of this folder, checks it, and puts a namespace on it')
    .option('--message <text>', 'the name of the version')
    .option('--dry-run', 'say what would be done, and change nothing')
    .option(
      '--region <theirs=here>',
      'a region of a Rivet configuration and its name here; may be repeated',
      collectPair,
    )
    .option('--no-check', 'do not check a lobby of the new version first')
    .addOption(
      new Option(
        '--version <name>',
        'take an existing version, by name or id, such as the one that is live in staging',
      ).conflicts(['message', 'dryRun', 'region']),
    )
    .option('--wait [time]', 'wait until all lobbies of other versions have ended, by default for at most 1h')
    .addOption(
      new Option('--detach', 'check and switch in the background, once everything is uploaded').conflicts([
        'wait',
        'dryRun',
      ]),
    )
    .action(async (namespace, options) => (await import('./commands/deploy.ts')).deploy(namespace, options));
  addCommand(program, 'rollback [namespace]', 'puts a namespace back on its previous version').action(
    async (namespace, options) => (await import('./commands/rollback.ts')).rollback(namespace, options),
  );
  addCommand(program, 'status', 'shows what runs in a namespace, and which version is live').action(async (options) =>
    (await import('./commands/status.ts')).status(options),
  );
  addCommand(
    program,
    'logs [server]',
    'shows the log of a server or lobby; by default the newest server, even an ended one',
  )
    .option(
      '-f, --follow',
      'follow from the first line until the server ends; fail if it crashed; with --all, until ctrl-C',
    )
    .option('--server <id>', 'the log of this server')
    .option('--lobby <id>', "the log of this lobby's server")
    .option('--all', 'logs of up to 30 servers: running ones before ended ones; with --follow, also later ones')
    .option('--grep <text>', 'only lines that contain a text')
    .option(
      '--since <time>',
      'only lines of the last 30s, 10m, 2h or 1d, or since a time in UTC such as 2026-11-23T12:00',
    )
    .action(async (server, options) => (await import('./commands/logs.ts')).logs(server, options));
  addCommand(program, 'why', 'explains what the matchmaker decided about a request')
    .argument('<ray>', "the request's ray id: a UUID, in the header rvt-ray-id of the answer")
    .action(async (ray, options) => (await import('./commands/why.ts')).why(ray, options));
}

function addOperating(program: Command): void {
  addCommand(program, 'open', 'opens the hub in a browser, logged in, at the namespace').action(async (options) =>
    (await import('./commands/open.ts')).open(options),
  );
  const config = program
    .command('config')
    .description('the configuration of the game in this folder: check, show, schema');
  config
    .command('check')
    .description('checks muster.yaml, and the files that it names')
    .option('--json', 'write JSON')
    .action(async (options) => (await import('./commands/config.ts')).checkConfig(options));
  config
    .command('show')
    .description('shows the configuration as a deploy takes it')
    .option('--json', 'write JSON')
    .action(async (options) => (await import('./commands/config.ts')).showConfig(options));
  config
    .command('schema')
    .description('writes the JSON schema of muster.yaml, for editors')
    .option('--json', 'write it as one line')
    .action(async (options) => (await import('./commands/config.ts')).showSchema(options));

  const lobbies = program.command('lobbies').description('running lobbies: list, watch, show, close, delete');
  addCommand(lobbies, 'list', 'lists the running lobbies').action(async (options) =>
    (await import('./commands/lobbies.ts')).listLobbies(options),
  );
  addCommand(lobbies, 'watch', 'shows the newest running lobbies, and each change immediately')
    .option('--count <number>', 'how many, 200 at most; by default 50, or what fits in the terminal')
    .action(async (options) => (await import('./commands/watch-lobbies.ts')).watchLobbies(options));
  addCommand(lobbies, 'show <lobby>', 'shows a lobby and its server').action(async (lobby, options) =>
    (await import('./commands/lobbies.ts')).showLobby(lobby, options),
  );
  addCommand(lobbies, 'close <lobby>', 'closes a lobby to finds; its players stay')
    .option('--undo', 'open it again')
    .action(async (lobby, options) => (await import('./commands/lobbies.ts')).closeLobby(lobby, options));
  addCommand(lobbies, 'delete <lobby>', 'ends a lobby and its server').action(async (lobby, options) =>
    (await import('./commands/lobbies.ts')).deleteLobby(lobby, options),
  );
  addCommand(program, 'players', 'lists the players with a seat in a running lobby').action(async (options) =>
    (await import('./commands/players.ts')).listPlayers(options),
  );
  const servers = program.command('servers').description('game servers: list, show, stop');
  addCommand(servers, 'list', 'lists the servers, newest first')
    .option('--all', 'also those that have ended')
    .action(async (options) => (await import('./commands/servers.ts')).listServers(options));
  addCommand(servers, 'show <server>', 'shows a server, and how it ended').action(async (server, options) =>
    (await import('./commands/servers.ts')).showServer(server, options),
  );
  addCommand(servers, 'stop <server>', 'ends a server').action(async (server, options) =>
    (await import('./commands/servers.ts')).stopServer(server, options),
  );
  const versions = program.command('versions').description('versions of a game: list, show, diff');
  addCommand(versions, 'list', 'lists the versions of a game, and where each is live').action(async (options) =>
    (await import('./commands/versions.ts')).listVersions(options),
  );
  addCommand(versions, 'show <version>', 'shows the configuration of a version, by name or id').action(
    async (version, options) => (await import('./commands/versions.ts')).showVersion(version, options),
  );
  addCommand(versions, 'diff <from> <to>', 'shows what differs between two versions').action(
    async (from, to, options) => (await import('./commands/versions.ts')).compareVersions(from, to, options),
  );
  addCommand(program, 'builds', 'lists the builds of a game, newest first').action(async (options) =>
    (await import('./commands/lists.ts')).listBuilds(options),
  );
  addCommand(program, 'namespaces', 'lists the namespaces of a game').action(async (options) =>
    (await import('./commands/lists.ts')).listNamespaces(options),
  );
  addCommand(program, 'regions', 'lists the regions of a game').action(async (options) =>
    (await import('./commands/lists.ts')).listRegions(options),
  );

  const exported = program.command('exports').description('links to download: lobbies, log');
  addCommand(exported, 'lobbies', 'writes a link to the history of the lobbies of a game, as CSV')
    .option('--since <time>', 'how far it goes back: 12h, 30d', '7d')
    .action(async (options) => (await import('./commands/exports.ts')).exportLobbies(options));
  addCommand(exported, 'log <server>', 'writes a link to the whole log of a server')
    .option('--errors', 'export stderr instead of stdout')
    .action(async (server, options) => (await import('./commands/exports.ts')).exportLog(server, options));
  addCommand(
    program,
    'bots <count>',
    'lets bots play; fails after a fault or a limit of your address, or without a seat',
  )
    .option('--for <time>', 'how long they play: 30s, 10m', '30s')
    .option('--mode <name>', 'the game mode; by default the first')
    .action(async (count, options) => (await import('./commands/bots.ts')).bots(count, options));
  addServiceCommand(
    program,
    'machines [machine]',
    'lists the machines of a service, or shows or drains one; for administrators',
  )
    .option(
      '--drain [time]',
      'drain it: no new servers start, and lobbies end when empty; after this time, everything left ends',
    )
    .addOption(new Option('--undo', 'let it take servers again').conflicts(['drain', 'wait']))
    .option('--wait [time]', 'wait until it has no server, by default for at most 1h')
    .action(async (machine, options) => (await import('./commands/machines.ts')).machines(machine, options));
  addCommand(
    program,
    'doctor',
    'checks a service: database, disk, clock, addresses, isolation, limits, your token',
  ).action(async (options) => (await import('./commands/doctor.ts')).doctor(options));
}

function addAccess(program: Command): void {
  addServiceCommand(program, 'login [url]', 'logs in to a service, by a link or by a token').action(
    async (url, options) => (await import('./commands/login.ts')).login(url, options),
  );
  addServiceCommand(program, 'logout', 'forgets the logins to a service').action(async (options) =>
    (await import('./commands/login.ts')).logout(options),
  );
  addServiceCommand(program, 'whoami', 'shows the service and the caller: a person, or a game').action(
    async (options) => (await import('./commands/login.ts')).whoami(options),
  );
  const tokens = program.command('tokens').description('tokens: create, inspect, revoke');
  const kinds = new Argument('<kind>', 'for clients, for tools that deploy, or for a back end');
  addCommand(tokens, 'create', 'creates a token of a game, and writes it to stdout')
    .addArgument(kinds.choices(['public', 'cloud', 'service']))
    .action(async (kind, options) => (await import('./commands/tokens.ts')).createToken(kind, options));
  addServiceCommand(tokens, 'inspect', 'shows whose token you use: that of a person, or a cloud token').action(
    async (options) => (await import('./commands/tokens.ts')).inspectToken(options),
  );
  addCommand(tokens, 'revoke', 'revokes all cloud and service tokens and share links of a game')
    .option('--yes', 'confirm it')
    .action(async (options) => (await import('./commands/tokens.ts')).revokeTokens(options));
  const use = addCommand(program, 'use', 'selects a profile: the service, game and namespace of later commands')
    .argument('<profile>', 'its name; --url, --game and --namespace create or change it')
    .action(async (profile, options) => (await import('./commands/login.ts')).use(profile, options));
  use.options.find(({ long }) => long === '--token')?.hideHelp();
}

function addRaw(program: Command): void {
  addServiceCommand(program, 'api', 'sends any request of the API')
    .argument('<method>', 'GET, POST, PUT, PATCH or DELETE')
    .argument('<path>', 'a path of the API, such as /cloud/games')
    .option('-d, --data <json>', 'the body; - reads it from standard input')
    .action(async (method, path, options) => (await import('./commands/raw.ts')).callApi(method, path, options));
  addServiceCommand(program, 'watch', 'writes what a path answers now and after every change, one a line')
    .argument('<path>', 'a path of the API that can be watched')
    .action(async (path, options) => (await import('./commands/raw.ts')).watchPath(path, options));
  program
    .command('complete')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .description("prints a shell's completion script")
    .action(async (shell) => (await import('./commands/complete.ts')).complete(shell));
}

/**
 * Throws a Failure for an empty argument or value, which a shell makes of a variable that is not set. It would stand for any
 * server, or for the default namespace.
 */
function refuseEmpty(command: Command): void {
  const argument = command.registeredArguments.find((_, index) => command.args[index] === '')?.name();
  const option = command.options.find((one) => command.getOptionValue(one.attributeName()) === '')?.long;
  const what = argument === undefined ? option && `The value of ${option}` : `The argument "${argument}"`;
  if (what) throw new Failure(`${what} is empty: is the variable that it comes from set?`, EXIT.wrong_use);
}

/** Collects the values of an option like `--region lnd-fra=frankfurt`. */
function collectPair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, theirs, here] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (theirs === undefined || here === undefined) throw new InvalidArgumentError('Write NAME=NAME_HERE.');
  return { ...before, [theirs]: here };
}
