import { expect, test } from 'bun:test';
import { makeGame } from '../../support/game.ts';
import { serversOf } from '../../support/servers.ts';
import { openTestService } from '../../support/service.ts';

test('servers: they get the address of the API where the service has a name, which containers do not know', async () => {
  // The system looks this short form up like a name.
  await using service = await openTestService({ MUSTER_HOST: '127.1' });
  const servers = serversOf(service, await makeGame(service.api, service.administrator_token));
  const id = await servers.run('echo $SERVICE_API_ENDPOINT; exec sleep 600');
  expect(await servers.waitForLines(id, 1)).toEqual([`http://127.0.0.1:${service.config.port}`]);
});
