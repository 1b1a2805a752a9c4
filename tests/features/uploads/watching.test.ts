import { beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { makeGame, type TestGame } from '../../support/game.ts';
import { shareService } from '../../support/suite.ts';
import { prepareScript, sendPart } from '../../support/uploads.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const readState = async (upload_id: string) =>
  (await muster.api.ok('GET', `/cloud/games/${game.game_id}/uploads/${upload_id}`, { token: game.cloud_token })).upload;

test('uploads: the state of one is read without the rows of its files', async () => {
  const { requests, upload_id } = await prepareScript(muster, game, { content_length: 3 });
  for (const request of requests) expect(await sendPart(request, '1+1')).toBe('200 accepted');
  await muster.database.transact(async (tx) => {
    await tx.execute(sql`lock table upload_files in access exclusive mode`);
    expect(await readState(upload_id)).toMatchObject({ received_length: 3, complete: false });
  });
});

test('uploads: a part that is sent again counts once, also concurrently', async () => {
  const { requests, upload_id } = await prepareScript(muster, game, { content_length: 3 });
  const [request] = requests;
  if (!request) throw new Error('a file has a request');
  await Promise.all(Array.from({ length: 6 }, () => sendPart(request, '1+1')));
  expect(await readState(upload_id)).toMatchObject({ received_length: 3, complete: false });
});
