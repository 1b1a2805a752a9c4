import { beforeAll, expect, test } from 'bun:test';
import type { Observation } from '../../../src/features/servers/runtimes/runtime.ts';
import { selectServerById, setFailed } from '../../../src/features/servers/store.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { createEndedRuntime, idsOf, openSimulatedMachine } from '../../support/matchmaker/simulated-machine.ts';
import { textsOf } from '../../support/server-logs.ts';
import { shareService } from '../../support/suite.ts';

const FAILURE = 'the server took port 8080, which belongs to the service: listen on the port in PORT_<label> instead';
const GONE: Observation = { is: 'ended', exit_code: null, exit_signal: null };

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

test('ending: a server that was ended after its row was read has the reason of its end', async () => {
  const { database, clock } = muster;
  let has_failed = false;
  const runtime = createEndedRuntime({
    async observe(servers) {
      // As when Muster ends a server for its port between the two reads of a step.
      for (const server_id of has_failed ? [] : idsOf(servers)) {
        const row = await selectServerById(database.queries, server_id);
        if (row) await database.transact((tx) => setFailed(tx, row, FAILURE, clock.now()));
        has_failed = true;
      }
      return new Map(idsOf(servers).map((server_id) => [server_id, GONE]));
    },
  });
  await using simulated = await openSimulatedMachine(muster, game, runtime);
  const server_id = await simulated.add({ identity: {}, started_at: clock.now() });
  expect(await simulated.waitForEvent('server_ended', server_id)).toMatchObject({ failure: FAILURE });
  expect((await selectServerById(database.queries, server_id))?.failure).toBe(FAILURE);
  const { lines } = await simulated.logs.lastLines({ server_id, stream: 'std_err' });
  expect(textsOf(lines)).toEqual([`[muster] ${FAILURE}`]);
});
