import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join, resolve } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { createProgram } from '../../src/cli/program.ts';
import { Settings } from '../../src/settings.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { COMMAND, type Home, makeHome } from '../support/program.ts';

const ROOT = resolve(import.meta.dir, '../..');

let home: Home;
beforeAll(async () => {
  home = await makeHome();
});
afterAll(() => home[Symbol.asyncDispose]());

const run = (args: string[], settings: Record<string, string> = {}) =>
  home.run({ command: [...COMMAND, ...args], settings });

test('commands: an unknown command or argument exits with 2 and says what to write', async () => {
  const WRONG: [args: string[], output: string][] = [
    [['sreve'], "error: unknown command 'sreve'\n(Did you mean serve?)\n"],
    [['constructor'], "error: unknown command 'constructor'\n"],
    [
      ['serve', '--port=80'],
      'The command "serve" takes no arguments, but got "--port=80": settings come from the environment; "muster --help" lists all commands and settings.\n',
    ],
    ...['backup', 'restore'].flatMap((command) =>
      [[], [''], ['--force'], ['one', 'two']].map((rest): [string[], string] => [
        [command, ...rest],
        `Name one file: muster ${command} FILE\n`,
      ]),
    ),
  ];
  const runs = await Promise.all(WRONG.map(([args]) => run(args)));
  expect(runs).toEqual(WRONG.map(([, output]) => ({ exit_code: 2, output })));
});

test('commands of this machine: with --json they write one object, and one line of JSON if they fail', async () => {
  const failed = (exit_code: number, message: unknown) => ({ exit_code, error: { exit_code, message } });
  const RUNS: [args: string[], answer: object][] = [
    [['--version', '--json'], { exit_code: 0, version: expect.stringContaining(manifest.version) }],
    [['backup', '--json'], failed(2, 'Name one file: muster backup FILE')],
    [
      ['restore', 'missing.tar', '--json'],
      failed(1, expect.stringMatching(/^There is no file .*missing\.tar: name one/)),
    ],
    [['upgrade', '--json'], failed(2, expect.stringContaining('muster upgrade --check'))],
    [['upgrade', '--check', '--json'], failed(1, expect.stringContaining('There is no database in'))],
    [['status', '--jsn', '--json'], failed(2, expect.stringContaining("unknown option '--jsn'"))],
  ];
  for (const [args, answer] of RUNS) {
    const { exit_code, output } = await run(args);
    expect([args, { exit_code, ...JSON.parse(output) }]).toEqual([args, answer]);
  }
}, 300_000);

test('serve: goes on after its terminal has closed if it was started to outlive that, as by nohup', async () => {
  const command = ['/bin/sh', '-c', 'trap "" HUP; exec "$@"', 'sh', ...COMMAND];
  const program = await home.start({ command, settings: { MUSTER_LOG: 'info' } });
  process.kill(program.pid, 'SIGHUP');
  expect(await program.stop('SIGTERM')).toBe(0);
  expect(program.output()).toContain('SIGTERM');
  expect(program.output()).not.toContain('SIGHUP');
}, 300_000);

describe('a command exits with 1 and one sentence', () => {
  test('if a setting is unknown or invalid', async () => {
    const [unknown, wrong] = await Promise.all([
      run(['serve'], { MUSTER_PROT: '80' }),
      run(['migrate'], { MUSTER_PORT: 'http' }),
    ]);
    expect(unknown).toEqual({
      exit_code: 1,
      output: 'MUSTER_PROT is not a setting; "muster --help" lists them all.\n',
    });
    expect(wrong).toEqual({
      exit_code: 1,
      output:
        'MUSTER_PORT is "http", which cannot be used (expected a whole number from 1 to 65535). Port to listen on.\n',
    });
  });

  test('if it cannot use its database, without printing the password', async () => {
    await using external = await openExternalDatabase();
    const missing = new URL(external.url);
    missing.password = 'hunter2';
    missing.pathname = '/no_such_database';
    const served = await run(['serve'], { DATABASE_URL: missing.href });
    expect(served).toEqual({
      exit_code: 1,
      output: 'The database that DATABASE_URL names does not exist: create it, or correct the name.\n',
    });
    const DATABASE_URL = `postgres://muster:hunter2@127.0.0.1:${findFreePort()}/muster`;
    expect(await run(['migrate'], { DATABASE_URL })).toEqual({
      exit_code: 1,
      output:
        'The database was not migrated, because the database refuses connections (ECONNREFUSED): repeat the command once it answers.\n',
    });
  }, 300_000);
});

describe('commands', () => {
  test('--help lists every command and every setting with its default', async () => {
    const help = await run(['--help'], { MUSTER_PORT: 'wrong' });
    expect(help.exit_code).toBe(0);
    for (const command of [
      'serve',
      'migrate',
      'backup FILE',
      'restore FILE',
      'upgrade',
      'test',
      'openapi',
      'version',
      '--help',
    ]) {
      expect(help.output).toMatch(new RegExp(`^ {2}${command} +\\S`, 'm'));
    }
    const text = help.output.replace(/\s+/g, ' ');
    for (const [name, { description = '', default: fallback }] of Object.entries(Settings.properties)) {
      expect(text).toContain(` ${name} ${description}${fallback === undefined ? '' : ` Default: ${fallback}.`}`);
    }
    expect(help.output.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });

  test('--help begins with the daily commands, and help COMMAND prints the help of one command', async () => {
    const { output } = await run(['--help']);
    const headings = [...output.matchAll(/^([A-Z][a-z' ]+):$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual([
      'Daily',
      'Inspect and operate',
      'Access',
      'Everything else',
      'The machine of a service',
      'Options',
    ]);
    const [, daily = ''] = /\nDaily:\n((?: {2}.*\n)+)/.exec(output) ?? [];
    expect([...daily.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name)).toEqual([
      'init',
      'dev',
      'deploy',
      'rollback',
      'status',
      'logs',
      'why',
    ]);
    const [deploy_help, list_help, test_help, all] = await Promise.all(
      [['help', 'deploy'], ['help', 'lobbies', 'list'], ['help', 'test'], ['help']].map((args) => run(args)),
    );
    expect([deploy_help, list_help, test_help]).toEqual([
      { exit_code: 0, output: expect.stringContaining('Usage: muster deploy [options] [namespace]') },
      { exit_code: 0, output: expect.stringContaining('Usage: muster lobbies list [options]') },
      { exit_code: 0, output: expect.stringContaining('Usage: muster test [--deploy]') },
    ]);
    expect(all?.output).toBe(output);
    expect(await run(['help', 'depoly'])).toEqual({
      exit_code: 2,
      output: "error: unknown command 'depoly'\n(Did you mean deploy?)\n",
    });
  }, 300_000);

  test('--help and help COMMAND print the help of each command of the machine', async () => {
    for (const name of ['serve', 'migrate', 'backup', 'restore', 'upgrade', 'test', 'openapi', 'version']) {
      const [asked, helped] = await Promise.all([run([name, '--help']), run(['help', name])]);
      expect([name, asked]).toEqual([name, { exit_code: 0, output: expect.stringContaining(`Usage: muster ${name}`) }]);
      expect(helped).toEqual(asked);
      expect(asked?.output.split('\n').filter((line) => line.length > 120)).toEqual([]);
    }
  }, 300_000);

  test('commands that only other commands start are neither suggested nor completed', async () => {
    expect(await run(['test-servic'])).toEqual({ exit_code: 2, output: "error: unknown command 'test-servic'\n" });
    const { output } = await run(['complete', '--', '']);
    expect(output).toContain('serve');
    for (const name of ['test-service', 'pod-build', 'pod-server']) expect(output).not.toContain(name);
  }, 300_000);

  test('--version prints the version, openapi the API', async () => {
    const [version, openapi] = await Promise.all([run(['--version']), run(['openapi'])]);
    // A build between two releases has its commit behind the number.
    expect(version.exit_code).toBe(0);
    expect(version.output).toMatch(new RegExp(`^${manifest.version}(-dev\\.g[0-9a-f]+(\\.changed)?)?\n$`));
    expect(openapi.exit_code).toBe(0);
    expect(JSON.parse(openapi.output)).toEqual(await Bun.file(join(ROOT, 'docs/openapi.json')).json());
  });
});

test('migrate: prepares a new database, and changes nothing in a current one', async () => {
  await using database = await openExternalDatabase();
  const settings = { DATABASE_URL: database.url };
  const { output } = await run(['migrate', '--json'], settings);
  expect(JSON.parse(output)).toEqual({ version: expect.stringContaining(manifest.version) });
  const done = { exit_code: 0, output: 'The database is up to date with this release.\n' };
  expect(await run(['migrate'], settings)).toEqual(done);
  expect(await run(['migrate'], settings)).toEqual(done);
});

test('migrate: says that the database of a data directory is new, because MUSTER_DATA may be misspelt', async () => {
  await using empty = await makeHome();
  const { exit_code, output } = await empty.run({ command: [...COMMAND, 'migrate'] });
  const is_new = `The database is new, because ${empty.data_directory} had none (MUSTER_DATA). It is up to date`;
  expect([exit_code, output]).toEqual([0, expect.stringContaining(is_new)]);
});

test('commands: there are at most 40, and all that talk to a service write JSON but the one that writes a script', async () => {
  const { output } = await run(['--help']);
  const [commands = ''] = output.split('\nSettings of ');
  const names = [...commands.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
  expect(names).toContain('serve');
  expect(names).toContain('deploy');
  expect(names.length).toBeLessThanOrEqual(40);
  expect(new Set(names).size).toBe(names.length);
  const all = createProgram().commands.flatMap((one) => (one.commands.length > 0 ? [...one.commands] : [one]));
  const without = all.filter(({ options }) => !options.some(({ long }) => long === '--json'));
  expect(without.map((command) => command.name())).toEqual(['complete']);
});
