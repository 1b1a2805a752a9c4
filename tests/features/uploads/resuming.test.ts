import { beforeAll, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { shareService } from '../../support/suite.ts';
import { completion, type PartRequest, prepareScript, sendPart } from '../../support/uploads.ts';

const MIB = 1024 ** 2;
const SCRIPT = `//${'x'.repeat(12 * MIB - 2)}`;

const muster = shareService();
let game: TestGame;
let other: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
});

const readMissing = (upload_id: string, { game_id, cloud_token: token }: TestGame) =>
  muster.api.call('GET', `/cloud/games/${game_id}/uploads/${upload_id}/requests`, { token });

const partOf = ({ byte_offset, content_length }: PartRequest) =>
  SCRIPT.slice(byte_offset, byte_offset + content_length);

test('uploads: parts have the requested length, within the limits', async () => {
  const wanted = { content_length: SCRIPT.length, multipart_upload: true };
  const { requests } = await prepareScript(muster, game, { ...wanted, part_length: 5 * MIB });
  expect(requests.map(({ byte_offset, content_length }) => [byte_offset, content_length])).toEqual([
    [0, 5 * MIB],
    [5 * MIB, 5 * MIB],
    [10 * MIB, 2 * MIB],
  ]);
  for (const part_length of [5 * MIB - 1, 100 * MIB + 1, 5 * MIB + 0.5]) {
    const image_file = { path: 'server.js', content_length: 1 };
    const body = { display_name: 'Test build', kind: 'javascript', image_file, multipart_upload: true, part_length };
    const { game_id, cloud_token: token } = game;
    const refused = await muster.api.call('POST', `/cloud/games/${game_id}/builds`, { token, body });
    expect([part_length, refused.status, refused.body.code]).toEqual([part_length, 400, 'API_BAD_BODY']);
  }
});

test('uploads: the missing parts of an interrupted one are listed with addresses that work, and none once it is complete', async () => {
  const wanted = { content_length: SCRIPT.length, multipart_upload: true, part_length: 5 * MIB };
  const { requests, ...upload } = await prepareScript(muster, game, wanted);
  const [first, second] = requests;
  if (!first || !second) throw new Error('there are three parts');
  expect(await sendPart(second, partOf(second))).toBe('200 accepted');
  expect(await sendPart(first, 'too short')).toBe('400 UPLOAD_LENGTH_MISMATCH');

  const { presigned_requests } = (await readMissing(upload.upload_id, game)).body;
  expect(presigned_requests.map((request: PartRequest) => request.byte_offset)).toEqual([0, 10 * MIB]);
  for (const request of presigned_requests) expect(await sendPart(request, partOf(request))).toBe('200 accepted');
  expect((await readMissing(upload.upload_id, game)).body).toEqual({ presigned_requests: [] });
  expect(await completion(muster, upload, game.cloud_token)).toBe('200 complete');
  expect((await readMissing(upload.upload_id, game)).body).toEqual({ presigned_requests: [] });
});

test('uploads: the missing parts of one are listed for its game only', async () => {
  const { upload_id } = await prepareScript(muster, game, { multipart_upload: true });
  expect((await readMissing(upload_id, other)).body).toMatchObject({ code: 'UPLOAD_NOT_FOUND' });
  expect((await readMissing(crypto.randomUUID(), game)).body).toMatchObject({ code: 'UPLOAD_NOT_FOUND' });
  const foreign = await readMissing(upload_id, { ...game, cloud_token: other.cloud_token });
  expect(foreign.body).toMatchObject({ code: 'GAME_NOT_FOUND' });
});
