import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { completeUpload, completion, prepareScript, sendPart } from '../../support/uploads.ts';
import { waitFor } from '../../support/wait.ts';

let muster: TestService;
let game: TestGame;
beforeAll(async () => {
  muster = await openTestService();
  game = await makeGame(muster.api, muster.administrator_token);
});
afterAll(() => muster[Symbol.asyncDispose]());

/** Sends the content of an upload without completing it. */
async function send() {
  const { requests, ...upload } = await prepareScript(muster, game);
  for (const request of requests) expect(await sendPart(request, 'x')).toBe('200 accepted');
  return upload;
}

const summaries = async () =>
  (await muster.api.ok('GET', `/cloud/games/${game.game_id}/builds`, { token: game.cloud_token })).builds;
const summaryOf = async (build_id: string) =>
  (await summaries()).find((build: { build_id: string }) => build.build_id === build_id);

test('uploads: one can be watched while it arrives; that of another game does not exist', async () => {
  const { requests, ...upload } = await prepareScript(muster, game, { content_length: 3 });
  const path = `/cloud/games/${game.game_id}/uploads/${upload.upload_id}`;
  const first = await muster.api.ok('GET', path, { token: game.cloud_token });
  expect(first.upload).toMatchObject({ kind: 'build', content_length: 3, received_length: 0, complete: false });
  const next = (index: string) => muster.api.ok('GET', `${path}?watch_index=${index}`, { token: game.cloud_token });
  const next_answer = next(first.watch.index);
  for (const request of requests) await sendPart(request, '1+1');
  const second = await next_answer;
  expect(second.upload).toMatchObject({ received_length: 3, complete: false });
  const completing = next(second.watch.index);
  expect(await completion(muster, upload, game.cloud_token)).toBe('200 complete');
  expect((await completing).upload).toMatchObject({ received_length: 3, complete: true });
  const other = await makeGame(muster.api, muster.administrator_token);
  const foreign = await muster.api.get(path.replace(game.game_id, other.game_id), other.cloud_token);
  expect([foreign.status, foreign.body.code]).toEqual([404, 'UPLOAD_NOT_FOUND']);
});

describe('an upload is not completed', () => {
  test('before its bytes have arrived, and the error names what is missing', async () => {
    const { requests, ...upload } = await prepareScript(muster, game, { path: '../"maps".js', content_length: 3 });
    const { status, body } = await completeUpload(muster, upload, game.cloud_token);
    expect({ status, code: body.code, message: body.message }).toEqual({
      status: 400,
      code: 'UPLOAD_INCOMPLETE',
      message:
        'The upload is incomplete: the part of "../\\"maps\\".js" at byte 0 is missing. Send the missing parts, then complete it.',
    });
    expect(await summaryOf(upload.build_id)).toMatchObject({ complete: false });
    for (const request of requests) await sendPart(request, '1+1');
    expect(await completion(muster, upload, game.cloud_token)).toBe('200 complete');
  });

  test('by callers without access to its game, for whom it does not exist', async () => {
    const stranger = await makeGame(muster.api, muster.administrator_token);
    const upload = await send();
    const guest = await makeGuest(muster.api, game);
    const CALLERS: [who: string, token: string, is: string][] = [
      ['a caller without a token', '', '401 API_UNAUTHORIZED'],
      ["another game's cloud token", stranger.cloud_token, '404 UPLOAD_NOT_FOUND'],
      ['an identity that is no member of the group', guest.token, '404 UPLOAD_NOT_FOUND'],
      ["the game's service token", game.service_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
      ["the game's public token", game.public_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
    ];
    for (const [who, token, is] of CALLERS) {
      expect(`${who}: ${await completion(muster, upload, token)}`).toBe(`${who}: ${is}`);
    }
    expect(await summaryOf(upload.build_id)).toMatchObject({ complete: false });
    expect(await completion(muster, upload, muster.administrator_token)).toBe('200 complete');
  });

  test('if it does not exist', async () => {
    const cases = [crypto.randomUUID(), 'nonsense', '..', '0'.repeat(36)];
    const answers = cases.map((upload_id) => completion(muster, { upload_id }, game.cloud_token));
    expect(await Promise.all(answers)).toEqual(['404 UPLOAD_NOT_FOUND', ...Array(3).fill('404 API_NOT_FOUND')]);
  });
});

describe('an upload is completed', () => {
  test('once, however often the request is repeated', async () => {
    const upload = await send();
    const before = await summaryOf(upload.build_id);
    expect(before).toMatchObject({ complete: false, upload_id: upload.upload_id, content_length: 1 });
    for (let time = 0; time < 3; time += 1) {
      expect(await completion(muster, upload, game.cloud_token)).toBe('200 complete');
      expect(await summaryOf(upload.build_id)).toEqual({ ...before, complete: true });
    }
  });

  test('once by concurrent requests: a later one is refused and may repeat', async () => {
    const upload = await send();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => completeUpload(muster, upload, game.cloud_token)),
    );
    const busy = answers.filter(({ status }) => status !== 200);
    expect(busy.length).toBeLessThan(20);
    for (const { status, body, headers } of busy) {
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'UPLOAD_BUSY', '1']);
    }
    expect(await completion(muster, upload, game.cloud_token)).toBe('200 complete');
    expect(
      (await summaries()).filter(({ upload_id }: { upload_id: string }) => upload_id === upload.upload_id),
    ).toEqual([expect.objectContaining({ complete: true })]);
  });

  test('and accepts no bytes afterwards, also if their request began before', async () => {
    const { requests, ...upload } = await prepareScript(muster, game);
    const [request] = requests;
    if (!request) throw new Error('a file has a request');
    expect(await sendPart(request, 'x')).toBe('200 accepted');
    const sending = Array.from({ length: 10 }, () => sendPart(request, 'y'));
    const completing = completion(muster, upload, game.cloud_token);
    for (const is of await Promise.all(sending))
      expect(is).toMatch(/^(200 accepted|400 UPLOAD_INVALID|503 UPLOAD_BUSY)$/);
    expect(await completing).toBe('200 complete');
    expect(await sendPart(request, 'z')).toBe('400 UPLOAD_INVALID');
  });
});

test('uploads: an incomplete one is removed after a day, with its build', async () => {
  const [abandoned, complete] = [await send(), await send()];
  expect(await completion(muster, complete, game.cloud_token)).toBe('200 complete');
  muster.clock.advance(24 * 3_600_000 + 1_000);
  const young = await send();
  // Another service on the database removes it at its start.
  await using _other = await openTestService({}, { database_of: muster });
  await waitFor(async () => !(await summaryOf(abandoned.build_id)), 'the abandoned build to be removed');
  expect(await completion(muster, abandoned, game.cloud_token)).toBe('404 UPLOAD_NOT_FOUND');
  expect(await summaryOf(complete.build_id)).toMatchObject({ complete: true });
  expect(await completion(muster, young, game.cloud_token)).toBe('200 complete');
});
