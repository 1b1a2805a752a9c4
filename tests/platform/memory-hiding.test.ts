import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { waitForLockWaiter } from '../support/database/advisory-locks.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { commandOf, type Home, makeHome, type Program } from '../support/program.ts';
import { IS_ROOT } from '../support/runtimes/runtimes.ts';

const SECRET = 'canary-of-a-proxy-secret';
const USER_ID = 64_321;

describe('the memory of the service', () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  beforeAll(async () => {
    const { url } = opened.use(await openExternalDatabase());
    const settings = { MUSTER_DEMO: 'off', DATABASE_URL: url, MUSTER_PROXY_SECRET: SECRET, MUSTER_HOST: '127.0.0.1' };
    home = opened.use(await makeHome(settings, { user_id: IS_ROOT ? USER_ID : undefined }));
    program = await home.start();
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  test.skipIf(!IS_ROOT)('shows no secrets in its environment, but its other settings', () => {
    const environment = readFileSync(`/proc/${program.pid}/environ`, 'utf8');
    expect(environment).toContain('MUSTER_HOST=127.0.0.1\0');
    expect(environment).toContain('MUSTER_PROXY_SECRET=\0');
    expect(environment).not.toContain(SECRET);
    expect(environment).not.toContain('postgres://');
  });

  const FILES = ['environ', 'maps', 'mem', 'fd', 'root', 'cwd'];
  test.each(FILES)('is closed to other processes of its user: %s', (file) => {
    const user = IS_ROOT ? { uid: USER_ID, gid: USER_ID } : {};
    const path = `/proc/${program.pid}/${file}`;
    const script = `if [ -d "${path}" ]; then ls "${path}"/; else head -c 1 "${path}"; fi`;
    const { exitCode, stderr } = Bun.spawnSync(['/bin/sh', '-c', script], { ...user, cwd: '/', env: {} });
    expect(stderr.toString()).toMatch(/Permission denied/);
    expect(exitCode).not.toBe(0);
  });

  test('is still readable for the service itself: it counts its files, and finds its servers', async () => {
    expect((await program.api.get('/health/ready')).status).toBe(200);
    expect(program.output()).not.toMatch(/EACCES|EPERM|loop_failed/);
  });
});

describe('the memory of a command that uses the database', () => {
  test.skipIf(!IS_ROOT).each([[['migrate']], [['upgrade', '--check']]])(
    'shows no secrets in its environment: %j',
    async (args) => {
      await using external = await openExternalDatabase();
      await using home = await makeHome({ DATABASE_URL: external.url });
      await using database = openDatabase({ url: external.url }, 1);
      const ending = await database.exclusively(LOCKS.migration, async () => {
        const command = home.launch({ command: [...commandOf('source'), ...args] });
        await waitForLockWaiter(database);
        expect(readFileSync(`/proc/${command.pid}/environ`, 'utf8')).not.toContain('postgres://');
        // A promise in an object: the command ends only once it gets the lock.
        return { exit_code: command.exited };
      });
      expect(await ending.exit_code).toBe(0);
    },
    300_000,
  );
});
