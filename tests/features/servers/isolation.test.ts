import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openCgroups } from '../../../src/platform/system/cgroups.ts';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeGame } from '../../support/game.ts';
import { type Home, makeHome } from '../../support/program.ts';
import { IS_ROOT } from '../../support/runtimes/runtimes.ts';
import { serversOf } from '../../support/servers.ts';

/** The user of a service without root and without control groups of its own. */
const USER_ID = 64_323;
const MISSING = ['limits of memory', 'limits of processor time', 'limits of processes'];

describe.skipIf(!IS_ROOT)('isolation: a machine that lacks parts of it', () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  beforeAll(async () => {
    const { url } = opened.use(await openExternalDatabase());
    home = opened.use(await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: url }, { user_id: USER_ID }));
  }, 300_000);
  afterAll(() => opened.disposeAsync(), 300_000);

  test('reports what is missing in its health, and in the log of each server', async () => {
    const program = await home.start();
    const { isolation } = (await program.api.get('/health/ready')).body;
    expect(isolation).toEqual({ level: 'partial', missing: MISSING });
    const servers = serversOf(program, await makeGame(program.api, program.administrator_token));
    const id = await servers.run('echo here >&2; exec sleep 600');
    const text = `[muster] isolation is partial on this machine, without ${MISSING.join(', ')}`;
    expect((await servers.waitForLines(id, 2, 'std_err')).toSorted()).toEqual([text, 'here'].toSorted());
    await program.stop('SIGINT');
  }, 300_000);

  test('starts no server if isolation is required, and says why', async () => {
    const program = await home.start({ settings: { MUSTER_ISOLATION: 'required' } });
    const servers = serversOf(program, await makeGame(program.api, program.administrator_token));
    const id = await servers.run('echo here >&2; exec sleep 600');
    const [line] = await servers.waitForLines(id, 1, 'std_err');
    expect(line).toContain('MUSTER_ISOLATION=required');
    for (const missing of MISSING) expect(line).toContain(missing);
    expect((await servers.waitForStartOrEnd(id)).started_at).toBeUndefined();
    await program.stop('SIGINT');
  }, 300_000);

  test('starts servers without isolation if it is off', async () => {
    const program = await home.start({ settings: { MUSTER_ISOLATION: 'off' } });
    expect((await program.api.get('/health/ready')).body.isolation).toEqual({ level: 'off', missing: [] });
    const servers = serversOf(program, await makeGame(program.api, program.administrator_token));
    const id = await servers.run('grep NoNewPrivs /proc/self/status; exec sleep 600');
    expect(await servers.waitForLines(id, 1)).toEqual(['NoNewPrivs:\t0']);
    await program.stop('SIGINT');
  }, 300_000);
});

test.skipIf(!IS_ROOT || openCgroups().controllers.length < 3)(
  'isolation: a machine that has all of it reports that',
  async () => {
    await using database = await openExternalDatabase();
    await using home = await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: database.url, MUSTER_ISOLATION: 'required' });
    const program = await home.start();
    expect((await program.api.get('/health/ready')).body.isolation).toEqual({ level: 'full', missing: [] });
    const servers = serversOf(program, await makeGame(program.api, program.administrator_token));
    const id = await servers.run(
      'grep -E "^(NoNewPrivs|Seccomp):" /proc/self/status >&2; ulimit -n >&2; exec sleep 600',
    );
    expect(await servers.waitForLines(id, 3, 'std_err')).toEqual(['NoNewPrivs:\t1', 'Seccomp:\t2', '8192']);
  },
  300_000,
);
