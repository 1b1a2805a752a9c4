import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { fileKey, PART_BYTES, PARTS_MAX, partKey, partsOf } from '../../../src/features/uploads/rules.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { completeUpload, completion, type PreparedUpload, prepareScript, sendPart } from '../../support/uploads.ts';

const file = { upload_id: 'upload', file_number: 3, path: 'map' };

describe('the parts of a file', () => {
  test('are those of the field: 100 MiB each, 10,000 at most', () => {
    expect([PART_BYTES, PARTS_MAX]).toEqual([104_857_600, 10_000]);
  });

  const CASES: [content_length: number, lengths: number[]][] = [
    [0, [0]],
    [1, [1]],
    [PART_BYTES - 1, [PART_BYTES - 1]],
    [PART_BYTES, [PART_BYTES]],
    [PART_BYTES + 1, [PART_BYTES, 1]],
    [3 * PART_BYTES, [PART_BYTES, PART_BYTES, PART_BYTES]],
  ];
  test.each(CASES)('of %d bytes, where parts are wanted', (content_length, lengths) => {
    expect(partsOf({ ...file, content_length }, true)).toEqual(
      lengths.map((length, part_number) => ({
        ...file,
        part_number,
        byte_offset: part_number * PART_BYTES,
        content_length: length,
      })),
    );
  });

  test('where none are wanted, it is one, however long', () => {
    for (const [content_length] of CASES) {
      expect(partsOf({ ...file, content_length }, false)).toEqual([
        { ...file, part_number: 0, byte_offset: 0, content_length },
      ]);
    }
  });

  test('follow each other without a gap, and lie in places of their own', () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_000 * PART_BYTES }), fc.boolean(), (content_length, is_multipart) => {
        const parts = partsOf({ ...file, content_length }, is_multipart);
        let end = 0;
        for (const { byte_offset, content_length: length } of parts) {
          expect(byte_offset).toBe(end);
          end += length;
        }
        expect(end).toBe(content_length);
        const keys = [fileKey(file.upload_id, file.file_number), ...parts.map(partKey)];
        expect(new Set(keys).size).toBe(parts.length + 1);
      }),
      { numRuns: 50 },
    );
  });
});

describe('an upload of several parts', () => {
  let muster: TestService;
  let game: TestGame;
  beforeAll(async () => {
    muster = await openTestService();
    game = await makeGame(muster.api, muster.administrator_token);
  });
  afterAll(() => muster[Symbol.asyncDispose]());

  const complete = (upload: PreparedUpload) => completion(muster, upload, game.cloud_token);
  const problem = async (upload: PreparedUpload) =>
    (await completeUpload(muster, upload, game.cloud_token)).body.message;
  const missing = (path: string, byte_offset: number) =>
    `The upload has not arrived in full: of "${path}", the part at byte ${byte_offset} is missing. Send the missing parts, then complete it.`;
  const stored = (upload: PreparedUpload, file_number: number) =>
    Bun.file(join(muster.config.data_directory, 'objects', upload.upload_id, `${file_number}`));

  async function prepareSite(files: { path: string; content_length: number }[]): Promise<PreparedUpload> {
    const { game_id, cloud_token: token } = game;
    const body = { display_name: 'Site', files };
    const answer = await muster.api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
    return { upload_id: answer.upload_id, requests: answer.presigned_requests };
  }

  test('arrives in any order, each part twice and at once; until then, what is missing is named', async () => {
    const content = new Uint8Array(PART_BYTES + 5).fill(7, 0, PART_BYTES).fill(9, PART_BYTES);
    const upload = await prepareSite([{ path: 'large', content_length: content.length }]);
    const [first, second] = upload.requests;
    if (!first || !second) throw new Error('there are two parts');
    expect([first, second]).toMatchObject([
      { path: 'large', byte_offset: 0, content_length: PART_BYTES },
      { path: 'large', byte_offset: PART_BYTES, content_length: 5 },
    ]);
    const end = content.slice(PART_BYTES);
    expect(await problem(upload)).toBe(missing('large', 0));
    const sent = await Promise.all(['xxxxx', end, end].map((part) => sendPart(second, part)));
    expect(sent).toEqual(['200 taken', '200 taken', '200 taken']);
    expect(await sendPart(second, end)).toBe('200 taken');
    expect(await problem(upload)).toBe(missing('large', 0));
    expect(await sendPart(first, end)).toBe('400 UPLOAD_LENGTH_MISMATCH');
    expect(await problem(upload)).toBe(missing('large', 0));
    expect(await sendPart(first, content.slice(0, PART_BYTES))).toBe('200 taken');
    expect(await complete(upload)).toBe('200 complete');
    expect(Bun.hash(await stored(upload, 0).bytes())).toBe(Bun.hash(content));
    expect(await stored(upload, 0).exists()).toBe(true);
    expect(await sendPart(first, content.slice(0, PART_BYTES))).toBe('400 UPLOAD_INVALID');
  }, 30_000);

  test('of several files: each in its own place, and the first that is missing is named', async () => {
    const files = ['index.html', 'a/style.css', 'empty'].map((path) => ({ path, content_length: path.length % 5 }));
    const upload = await prepareSite(files);
    expect(upload.requests.map(({ path, byte_offset, content_length }) => [path, byte_offset, content_length])).toEqual(
      files.map(({ path, content_length }) => [path, 0, content_length]),
    );
    for (const [index, request] of upload.requests.entries()) {
      expect(await problem(upload)).toBe(missing(request.path, 0));
      expect(await sendPart(request, `${index}`.repeat(request.content_length))).toBe('200 taken');
    }
    expect(await complete(upload)).toBe('200 complete');
    expect(await Promise.all([0, 1, 2].map((number) => stored(upload, number).text()))).toEqual(['', '1', '']);
  });

  test('a part does not count for another upload, nor for another file', async () => {
    const files = ['a', 'b'].map((path) => ({ path, content_length: 1 }));
    const [one, other] = [await prepareSite(files), await prepareSite(files)];
    for (const request of one.requests) await sendPart(request, request.path);
    expect(await complete(other)).toBe('400 UPLOAD_INCOMPLETE');
    expect(await complete(one)).toBe('200 complete');
    expect(await complete(other)).toBe('400 UPLOAD_INCOMPLETE');
  });

  test('that is small may be asked for in parts: it is a list of one', async () => {
    const { requests, ...upload } = await prepareScript(muster, game, { multipart_upload: true });
    expect(requests).toMatchObject([{ path: 'server.js', byte_offset: 0, content_length: 1 }]);
    for (const request of requests) await sendPart(request, 'x');
    expect(await complete({ ...upload, requests })).toBe('200 complete');
  });

  test('has six hours to arrive, and one hour as a whole', async () => {
    const { requests: whole } = await prepareScript(muster, game);
    const { requests: parts } = await prepareScript(muster, game, { multipart_upload: true });
    const send = async () => await Promise.all([...whole, ...parts].map((request) => sendPart(request, 'x')));
    const HOUR_MS = 3_600_000;
    expect(await send()).toEqual(['200 taken', '200 taken']);
    muster.clock.advance(HOUR_MS);
    expect(await send()).toEqual(['403 UPLOAD_SIGNATURE_INVALID', '200 taken']);
    muster.clock.advance(5 * HOUR_MS);
    expect(await send()).toEqual(['403 UPLOAD_SIGNATURE_INVALID', '403 UPLOAD_SIGNATURE_INVALID']);
  });
});
