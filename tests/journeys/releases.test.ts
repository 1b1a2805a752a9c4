import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { $ } from 'bun';
import { TARGETS } from '../../.ci/compile.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeHome } from '../support/program.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { commandOnArm64, HAS_ARM64, RUNS_ARM64 } from '../support/runtimes/arm64.ts';
import { openTestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const ROOT = resolve(import.meta.dir, '../..');
/** The first bytes of the programs of each system, and the number of the processor in those of Linux. */
const BEGINNINGS: Record<string, (bytes: Buffer) => boolean> = {
  'linux-x64': (bytes) => bytes.readUInt32BE() === 0x7f454c46 && bytes.readUInt16LE(18) === 62,
  'linux-arm64': (bytes) => bytes.readUInt32BE() === 0x7f454c46 && bytes.readUInt16LE(18) === 183,
  'darwin-arm64': (bytes) => bytes.readUInt32LE() === 0xfeedfacf && bytes.readUInt32LE(4) === 0x100000c,
  'darwin-x64': (bytes) => bytes.readUInt32LE() === 0xfeedfacf && bytes.readUInt32LE(4) === 0x1000007,
  'windows-x64': (bytes) => bytes.toString('latin1', 0, 2) === 'MZ',
};

describe.skipIf(!IS_FULL_LENGTH)('a release', () => {
  let directory: string;
  let programs: Map<string, string>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'muster-releases-'));
    await $`${process.execPath} .ci/release.ts ${join(directory, 'release')}`.cwd(ROOT).quiet();
    programs = new Map(await Promise.all(TARGETS.map(async ({ name }) => [name, await unpack(name)] as const)));
  }, 600_000);
  afterAll(() => rm(directory, { recursive: true, force: true }), 300_000);

  /** Unpacks the archive of a target, and returns the path of its program. */
  async function unpack(target: string): Promise<string> {
    const release = join(directory, 'release');
    const archive = readdirSync(release).find((name) => name.endsWith(`-${target}.tar.gz`)) ?? '';
    await $`tar -xzf ${join(release, archive)} -C ${directory}`.quiet();
    const file = target.startsWith('windows') ? 'muster.exe' : 'muster';
    return join(directory, archive.replace(/\.tar\.gz$/, ''), file);
  }

  const programOf = (target: string) => programs.get(target) ?? '';

  test('has an archive with one program for each target, and their checksums', async () => {
    const release = join(directory, 'release');
    expect(readdirSync(release)).toHaveLength(TARGETS.length + 1);
    expect(await $`sha256sum --check SHA256SUMS`.cwd(release).text()).toBe(
      (await Bun.file(join(release, 'SHA256SUMS')).text()).replace(/^\S+ {2}(.*)$/gm, '$1: OK'),
    );
    for (const { name } of TARGETS) {
      const beginning = Buffer.from(await Bun.file(programOf(name)).slice(0, 20).arrayBuffer());
      expect([name, BEGINNINGS[name]?.(beginning)]).toEqual([name, true]);
    }
  }, 300_000);

  test.skipIf(!HAS_ARM64)(
    'for arm64 deploys a folder to a service, and plays in it',
    async () => {
      const command = commandOnArm64(programOf('linux-arm64'));
      expect(await $`${command} --version`.text()).toBe(await $`${programOf('linux-x64')} --version`.text());
      await using muster = await openTestService();
      const files = {
        'server.ts': ROOM_SOURCE,
        'muster.yaml':
          'game: far\nbuild: {path: server.ts}\nmatchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}',
      };
      const { run } = await makeProjectFolder(muster, directory, { name: 'far', files, command });
      expect(await run('deploy')).toMatchObject({ exit_code: 0 });
      // In an emulator it takes seconds before the first finds.
      const { exit_code, stdout } = await run('bots', '2', '--for', '30s', '--game', 'far', '--json');
      expect([exit_code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ faults: [], without_port: 0 })]);
      expect(JSON.parse(stdout).connected).toBeGreaterThanOrEqual(2);
    },
    300_000,
  );

  test.skipIf(!RUNS_ARM64)(
    'for arm64 serves: its PostgreSQL and game servers run, and players get seats',
    async () => {
      await using home = await makeHome();
      const command = [programOf('linux-arm64')];
      const { stop } = await home.start({ command: [...command, 'serve'] });
      const env = { ...home.environment, MUSTER_URL: home.url };
      const played = await $`${command} bots 2 --for 45s --game demo --json`.env(env).nothrow();
      expect([played.exitCode, played.json()]).toEqual([0, expect.objectContaining({ faults: [], without_port: 0 })]);
      expect(played.json().connected).toBeGreaterThanOrEqual(2);
      expect(existsSync(join(home.data_directory, 'postgres'))).toBe(true);
      await stop('SIGINT');
      await waitFor(() => home.processes().length === 0, 'the service and what it started to end');
    },
    300_000,
  );
});

test('on a system without Linux, serve, dev and test say what they need, and commands without a service work', async () => {
  const run = async (...args: string[]) => {
    const command = [process.execPath, '--define', 'process.platform:"darwin"', 'src/main.ts', ...args];
    const { exitCode, stdout, stderr } = await $`${command}`.cwd(ROOT).quiet().nothrow();
    return { exit_code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  for (const name of ['serve', 'dev', 'test']) {
    const { exit_code, stderr } = await run(name);
    expect([exit_code, stderr]).toEqual([
      1,
      expect.stringMatching(/^"muster \w+" needs a machine that can run a service: Linux, or WSL2 [^\n]*\n$/),
    ]);
  }
  expect(await run('version')).toMatchObject({ exit_code: 0 });
  expect((await run('config', 'schema')).stdout).toContain('$schema');
}, 300_000);
