import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmod, cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { $ } from 'bun';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { commandOf, EXECUTABLE } from '../support/program.ts';
import { makeDataDirectory } from '../support/service.ts';
import { shareService } from '../support/suite.ts';
import { runWorkflow } from '../support/workflow.ts';

const DUEL = resolve(import.meta.dir, '../../examples/duel');
const WORKFLOW = join(DUEL, '.github/workflows/deploy.yml');
const VERSION = '0.0.1';
const MAIN = 'refs/heads/main';

const muster = shareService();
let home: string;
let releases: { url: string } & AsyncDisposable;
let token: string;
beforeAll(async () => {
  home = await makeDataDirectory();
  releases = await serveRelease(join(home, 'releases'));
  token = await createCloudToken();
}, 300_000);
afterAll(async () => {
  await releases[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

/** Serves a release with one archive: of the executable, or of a script that runs the source. */
async function serveRelease(directory: string) {
  const name = `muster-${VERSION}-linux-x64`;
  const program = join(directory, name, 'muster');
  await mkdir(join(directory, name), { recursive: true });
  if (EXECUTABLE !== undefined) await cp(EXECUTABLE, program);
  else {
    const command = commandOf('source').map((part) => `'${part}'`);
    await Bun.write(program, `#!/bin/sh\nexec ${command.join(' ')} "$@"\n`);
  }
  await chmod(program, 0o755);
  await $`tar -czf ${name}.tar.gz ${name} && sha256sum ${name}.tar.gz > SHA256SUMS`.cwd(directory);
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => new Response(Bun.file(join(directory, new URL(request.url).pathname))),
  });
  return { url: server.url.href.replace(/\/$/, ''), [Symbol.asyncDispose]: () => server.stop(true) };
}

/** Creates the game, and a token that can do everything to it and nothing to others. */
async function createCloudToken(): Promise<string> {
  const { api, administrator_token } = muster;
  const ok = (path: string, body: object) => api.ok('POST', path, { token: administrator_token, body });
  const { group_id } = await ok('/group/groups', { display_name: 'Studio' });
  const { game_id } = await ok('/cloud/games', { display_name: 'duel', developer_group_id: group_id });
  return (await ok(`/cloud/games/${game_id}/tokens/cloud`, {})).token;
}

/** Runs the workflow of examples/duel, changed or not, on a copy of the game. */
async function run(ref: string, { change = async (_folder: string) => {} } = {}) {
  const folder = await mkdtemp(join(home, 'workspace-'));
  await cp(DUEL, folder, { recursive: true });
  await change(folder);
  const temp = await makeDataDirectory(home);
  const values = {
    'github.ref': ref,
    'github.sha': crypto.randomUUID().replaceAll('-', ''),
    'github.run_id': '7',
    'github.run_attempt': '1',
    'vars.MUSTER_RELEASES': releases.url,
    'vars.MUSTER_VERSION': VERSION,
    'vars.MUSTER_URL': muster.config.public_url,
    'secrets.MUSTER_TOKEN': token,
  };
  const environment = { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: temp };
  const outcomes = await runWorkflow(WORKFLOW, { cwd: folder, temp, values, environment });
  return { outcomes, version: values['github.sha'].slice(0, 8) };
}

/** Returns the name of the version that each namespace has. */
async function readLive(): Promise<Record<string, string>> {
  const { api, administrator_token: admin } = muster;
  const { games } = await api.ok('GET', '/cloud/games', { token: admin });
  const { game_id } = games.find(({ name_id }: { name_id: string }) => name_id === 'duel');
  const { game } = await api.ok('GET', `/cloud/games/${game_id}`, { token: admin });
  const nameOf = (id: string) =>
    game.versions.find((one: { version_id: string }) => one.version_id === id).display_name;
  return Object.fromEntries(
    game.namespaces.map((one: { name_id: string; version_id: string }) => [one.name_id, nameOf(one.version_id)]),
  );
}

test.skipIf(!IS_FULL_LENGTH)(
  'the workflow of GitHub Actions: tests a pull request, and deploys what is on main',
  async () => {
    const before = await readLive();
    const pull_request = await run('refs/pull/1/merge');
    expect(pull_request.outcomes.map(({ name, exit_code }) => [name, exit_code])).toEqual([
      ['Get Muster', 0],
      ['Check muster.yaml', 0],
      ['Test', 0],
    ]);
    expect(await readLive()).toEqual(before);

    const { outcomes, version } = await run(MAIN);
    expect(outcomes.filter(({ exit_code }) => exit_code !== 0)).toEqual([]);
    expect(outcomes.map(({ name }) => name)).toEqual([
      'Get Muster',
      'Check muster.yaml',
      'Test',
      'Deploy to staging, and play there',
      'Deploy to prod',
    ]);
    expect(outcomes.map(({ output }) => output).join('')).not.toContain(token);
    expect(await readLive()).toMatchObject({ prod: `${version} prod 7.1`, staging: `${version} staging 7.1` });
  },
  300_000,
);

test.skipIf(!IS_FULL_LENGTH)(
  'the workflow of GitHub Actions: a failing test, or an archive with another checksum, deploys nothing',
  async () => {
    const before = await readLive();
    const breakServer = async (folder: string) => {
      await Bun.write(join(folder, 'server.js'), "throw new Error('a mistake')");
    };
    const { outcomes } = await run(MAIN, { change: breakServer });
    expect(outcomes.at(-1)).toMatchObject({ name: 'Test', exit_code: 1, output: expect.stringContaining(' 0 pass') });

    const sums = join(home, 'releases/SHA256SUMS');
    await Bun.write(sums, (await Bun.file(sums).text()).replace(/^\S+/, '0'.repeat(64)));
    expect((await run(MAIN)).outcomes).toMatchObject([{ name: 'Get Muster', exit_code: 1 }]);
    expect(await readLive()).toEqual(before);
  },
  300_000,
);
