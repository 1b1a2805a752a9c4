import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeGame } from '../support/game.ts';
import { machineIdOf } from '../support/machines/machines.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
let home: string;
let machine_id: string;
let run: Awaited<ReturnType<typeof makeProjectFolder>>['run'];
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-machines-'));
  machine_id = await machineIdOf(muster.config.data_directory);
  ({ run } = await makeProjectFolder(muster, home, { name: 'empty', files: { 'a.txt': '' } }));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('muster machines: refuses an unknown machine, none, a bad time, and callers that are no administrators', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const REFUSED: [args: string[], exit_code: number, message: string][] = [
    [['ffffffff'], 4, 'The service has no machine "ffffffff". List them: muster machines\n'],
    [['--drain'], 2, 'Say which machine: muster machines ID --drain\n'],
    [[machine_id, '--drain', 'soon'], 2, '--drain is "soon": write 30s, 10m, 2h or 1d.\n'],
    // A login would not help: it gets a token of this kind, too.
    [['--token', game.cloud_token], 3, 'Use one of: identity.\n(CLAIMS_MISSING_ENTITLEMENT'],
  ];
  for (const [args, exit_code, message] of REFUSED) {
    const result = await run('machines', ...args);
    expect([args, result.exit_code]).toEqual([args, exit_code]);
    expect(result.stderr).toContain(message);
  }
}, 300_000);

test('muster machines: drains a machine, says what is left, waits for it, and lets it take servers again', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, game);
  await servers.waitForStart(await servers.run(`trap 'exit 0' TERM; while :; do sleep 0.02; done`));
  const listed = await run('machines');
  expect(listed.stdout).toMatch(/^MACHINE +HOST +STATE +SINCE +SERVERS +LOBBIES +PLAYERS +DRAIN/);
  expect(listed.stdout).toContain(machine_id.slice(-12));
  const drained = await run('machines', machine_id, '--drain', '1d');
  expect([drained.exit_code, drained.stderr]).toEqual([0, 'It is being drained; left: 1 server with 0 players.\n']);
  const late = await run('machines', machine_id, '--wait', '1s');
  expect([late.exit_code, late.stderr]).toEqual([
    5,
    'It is being drained; left: 1 server with 0 players.\nIt is being drained; left: 1 server with 0 players. The time of --wait is over.\n',
  ]);
  // At a deadline that is over, all that is left ends.
  const waited = await run('machines', machine_id, '--drain', '0s', '--wait', '--json');
  expect(waited.exit_code).toBe(0);
  expect(JSON.parse(waited.stdout).machine).toMatchObject({ machine_id, servers: 0, drain: { is_complete: true } });
  const warning = `No game server can start, because all machines of this datacenter are drained: ${machine_id}.`;
  const warned = async () => (await run('status', '--game', game.game_id)).stderr.includes(warning);
  await waitFor(warned, 'the warning');
  expect((await run('doctor')).stdout).toContain(
    `${warning}\n  → Let a machine take servers again: muster machines ID --undo`,
  );
  const undone = await run('machines', machine_id, '--undo');
  expect([undone.exit_code, undone.stderr]).toEqual([0, 'It is not being drained.\n']);
  const { stdout } = await run('machines', '--json');
  expect(JSON.parse(stdout).machines).toMatchObject([{ machine_id, state: 'up' }]);
  expect(JSON.parse(stdout).machines[0].drain).toBeUndefined();
}, 300_000);
