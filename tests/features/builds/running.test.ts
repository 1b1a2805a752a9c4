import { beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { directoryOfBuild } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadBuild, uploadScript } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { listTree, packTar, type TarEntry } from '../../support/tar.ts';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

const TEST_TIMEOUT_MS = 300_000;
const script = (text: string): TarEntry => ({ name: 'server', content: `#!/bin/sh\n${text}\n`, mode: 0o755 });
const unpacked = (build_id: string) => directoryOfBuild(muster, build_id);

/** Starts a server of a build, and returns its id. */
async function start(build_id: string, runtime: object = {}): Promise<string> {
  const answer = await servers.create(await servers.bodyOf(build_id, { runtime }));
  expect(outcomeOf(answer)).toBe('200');
  return answer.body.server.id;
}

/** Runs a server of a build, and returns how it ended and what it printed. */
async function run(build_id: string, runtime: object = {}) {
  const server_id = await start(build_id, runtime);
  const end = await waitForEndEvent(muster, server_id);
  if (end.event !== 'server_ended') throw new Error('the log has the end of the server');
  const [lines, errors] = [await servers.linesOf(server_id), await servers.linesOf(server_id, 'std_err')];
  const { exit_code, exit_signal, failure } = end;
  return { exit_code, exit_signal, failure, lines, errors };
}

const archive = async (entries: TarEntry[], command: string[]): Promise<string> =>
  await uploadBuild(muster.api, game, { kind: 'archive', path: 'a.tar', content: await packTar(entries), command });

describe('a build cannot be run', () => {
  test('before it is complete', async () => {
    const { path } = serversOf(muster, game);
    const builds = path.replace('/servers', '/builds');
    const image_file = { path: 'server.js', content_length: 1 };
    const body = { name: 'Build', kind: 'javascript', image_file };
    const { build } = await muster.api.ok('POST', `${builds}/prepare`, { token: game.cloud_token, body });
    const answer = await servers.create(await servers.bodyOf(build));
    expect(outcomeOf(answer)).toBe('400 BUILDS_BUILD_NOT_COMPLETE');
  });

  test('by another game', async () => {
    const other = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
    const build_id = await uploadScript(muster.api, game, '');
    const answer = await other.create(await other.bodyOf(build_id));
    expect(outcomeOf(answer)).toBe('404 BUILDS_BUILD_NOT_FOUND');
  });
});

describe('an archive is run', () => {
  test(
    "in its directory, by its command and the server's own arguments",
    async () => {
      const text = 'pwd; echo "$0 $*"; cat maps/desert; exit 3';
      const build_id = await archive(
        [script(text), { name: 'maps/desert', content: 'sand\n' }],
        ['./server', '--fast'],
      );
      expect(await run(build_id, { arguments: ['--more', 'a b'] })).toMatchObject({
        exit_code: 3,
        lines: [unpacked(build_id), './server --fast --more a b', 'sand'],
        errors: ['[muster] the server ended with exit code 3'],
      });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'with any executable, also a compiled program',
    async () => {
      const program = readFileSync('/bin/true');
      const build_id = await archive([{ name: 'bin/game', content: program, mode: 0o755 }], ['bin/game']);
      expect(await run(build_id)).toEqual({ exit_code: 0, exit_signal: null, failure: null, lines: [], errors: [] });
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'and its log says why it could not start',
    async () => {
      const build_id = await archive([script('exit 0')], ['no-such-program']);
      const { exit_code, errors } = await run(build_id);
      expect(exit_code).toBe(127);
      expect(errors.join()).toContain('no-such-program');
    },
    TEST_TIMEOUT_MS,
  );
});

describe('javascript is run', () => {
  test(
    "by the service's executable, with types or without, whatever the file name",
    async () => {
      const typed = 'const where: string = process.cwd();\nconsole.log(where);\nprocess.exit(4 as number);';
      const build_id = await uploadScript(muster.api, game, typed);
      const errors = ['[muster] the server ended with exit code 4'];
      expect(await run(build_id)).toMatchObject({ exit_code: 4, lines: [unpacked(build_id)], errors });
      expect(await listTree(unpacked(build_id))).toEqual({ 'main.ts': 'file 644' });

      const content = Buffer.from('console.log(process.argv.slice(2).join());');
      const plain = await uploadBuild(muster.api, game, { kind: 'javascript', path: '../../escaped.mjs', content });
      expect(await run(plain, { arguments: ['a', 'b'] })).toMatchObject({ exit_code: 0, lines: ['a,b'] });
      expect(await listTree(unpacked(plain))).toEqual({ 'main.mjs': 'file 644' });
    },
    TEST_TIMEOUT_MS,
  );
});

// A user who is not root runs game servers as that user.
describe.skipIf(process.getuid?.() !== 0)('a server that runs as another user', () => {
  test(
    'can read its build and not change it',
    async () => {
      const text = `
      try() { if "$@" 2>/dev/null; then echo "$1 did"; else echo "$1 did not"; fi; }
      try cp maps/desert ../stolen; try touch new; try touch maps/new; try rm maps/desert; try mv maps sea
      try chmod 777 maps; try ln -s / root; try mkdir folder; (echo x >>server) 2>/dev/null && echo 'wrote' || echo 'kept'
      try ls ..
      cat maps/desert`;
      const entries = [script(text), { name: 'maps/desert', content: 'sand\n', mode: 0o666 }];
      const build_id = await archive(entries, ['./server']);
      const before = await listTree(unpacked(build_id));
      const { lines } = await run(build_id);
      const tried = ['cp', 'touch', 'touch', 'rm', 'mv', 'chmod', 'ln', 'mkdir'];
      expect(lines).toEqual([...tried.map((what) => `${what} did not`), 'kept', 'ls did not', 'sand']);
      expect(await listTree(unpacked(build_id))).toEqual(before);
    },
    TEST_TIMEOUT_MS,
  );
});

test(
  'builds: a machine without the files unpacks them once for any number of concurrent servers',
  async () => {
    const files = Array.from({ length: 100 }, (_, n) => ({ name: `maps/${n}`, content: `${n}` }));
    const build_id = await archive([script('set -- maps/*; echo $#'), ...files], ['./server']);
    const before = await listTree(unpacked(build_id));
    rmSync(unpacked(build_id), { recursive: true });
    const started = await Promise.all(Array.from({ length: 4 }, () => start(build_id)));
    for (const server_id of started) {
      expect(await waitForEndEvent(muster, server_id)).toMatchObject({ exit_code: 0, failure: null });
      expect(await servers.linesOf(server_id)).toEqual(['100']);
    }
    expect(await listTree(unpacked(build_id))).toEqual(before);
    const left = readdirSync(join(muster.config.data_directory, 'builds')).filter((name) => name.startsWith(build_id));
    expect(left).toEqual([build_id]);
  },
  TEST_TIMEOUT_MS,
);
