import { test } from 'bun:test';
import { makeGame } from '../game.ts';
import { serversOf } from '../servers.ts';
import { openTestService } from '../service.ts';

// A run of tests for journeys/test-runs.test.ts: it starts a game server, says where the run writes, and goes on forever.

test('runs a game server', async () => {
  const muster = await openTestService();
  const servers = serversOf(muster, await makeGame(muster.api, muster.administrator_token));
  await servers.waitForStart(await servers.run('exec sleep 1000'));
  console.log(`running in ${process.env.TMPDIR}`);
  await new Promise(() => {});
});
