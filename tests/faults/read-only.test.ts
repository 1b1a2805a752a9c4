import { expect, test } from 'bun:test';
import { openDatabaseAdmin } from '../support/database/read-only.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { waitUntilReady } from '../support/program.ts';
import { openTestService } from '../support/service.ts';
import { outcomeOf } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

test('database read-only for a moment: the service is not ready meanwhile, and then finds get seats again', async () => {
  await using service = await openTestService();
  await using operator = await openDatabaseAdmin(service.database_address);
  const game = await makeControlledGame(service, { max_players: 100 });
  await seatOf(find(service, game));

  await operator.forbidWrites('database');
  await waitFor(async () => outcomeOf(await find(service, game)) === '503 DATABASE_UNAVAILABLE', 'finds to be refused');
  const unready = await waitFor(async () => {
    const answer = await service.api.get('/health/ready');
    return answer.status !== 200 && answer;
  }, 'the service to notice');
  expect(unready.body).toMatchObject({
    code: 'SERVICE_NOT_READY',
    metadata: { reasons: [{ code: 'DATABASE_READ_ONLY' }] },
  });

  await operator.allowWrites('database');
  await waitUntilReady(service.api.base_url);
  await waitFor(async () => (await find(service, game)).status === 200, 'finds to get seats', 20_000);
}, 300_000);

test('database set read-only: the service is not ready, even while old connections can write', async () => {
  await using service = await openTestService();
  await using operator = await openDatabaseAdmin(service.database_address);
  await operator.setReadOnly('role in database');
  const answer = await service.api.get('/health/ready');
  expect([answer.status, answer.body.metadata]).toEqual([
    503,
    {
      reasons: [
        {
          code: 'DATABASE_READ_ONLY',
          message: 'the database is read-only (default_transaction_read_only is on)',
          advice: 'Switch default_transaction_read_only off in PostgreSQL.',
        },
      ],
    },
  ]);
  await operator.allowWrites('role in database');
  await waitUntilReady(service.api.base_url);
}, 300_000);
