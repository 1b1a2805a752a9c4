import { expect, test } from 'bun:test';
import { chownSync } from 'node:fs';
import { hasName } from '../../src/platform/database/nameless-user.ts';
import { makeGame } from '../support/game.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { serversOf } from '../support/servers.ts';

/** A user without an entry in any user database, like that of a container with `--user 54321`. */
const NAMELESS = 54_321;
/** It may read what the tests' own user may, because the program is in that user's folder. */
const AS_NAMELESS = [
  'setpriv',
  `--reuid=${NAMELESS}`,
  `--regid=${NAMELESS}`,
  '--clear-groups',
  '--inh-caps=-all,+dac_read_search',
  '--ambient-caps=-all,+dac_read_search',
];

const canBecomeNameless = Bun.which('setpriv') !== null && Bun.spawnSync([...AS_NAMELESS, 'true']).exitCode === 0;

test('nameless user: the system says whether a user has a name', () => {
  expect([hasName(0), hasName(NAMELESS)]).toEqual([true, false]);
});

test.skipIf(!canBecomeNameless)(
  'nameless user: starts everything, PostgreSQL and game servers too, twice',
  async () => {
    await using home = await makeHome({ MUSTER_DEMO: 'off' });
    chownSync(home.data_directory, NAMELESS, NAMELESS);
    const command = [...AS_NAMELESS, ...COMMAND];
    const first = await home.start({ command });
    const game = await makeGame(first.api, first.administrator_token);
    const servers = serversOf(first, game);
    await servers.waitForStart(await servers.run('exec sleep 600'));
    const pids = home.processes();
    // The program, its PostgreSQL and the game server.
    expect(pids.length).toBeGreaterThan(2);
    for (const pid of pids) expect(await Bun.file(`/proc/${pid}/status`).text()).toContain(`Uid:\t${NAMELESS}`);
    expect(await first.stop('SIGINT')).toBe(0);

    const second = await home.start({ command });
    expect((await second.api.get('/cloud/games', second.administrator_token)).body.games).toHaveLength(1);
    expect(await second.stop('SIGTERM')).toBe(0);
    const left = [...new Bun.Glob('*').scanSync({ cwd: `${home.data_directory}/postgres`, onlyFiles: false })].sort();
    expect(left.filter((name) => !/^\d/.test(name))).toEqual(['cluster', 'pgpass', 'postgres.log', 'socket']);
  },
  300_000,
);
