import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BunFile } from 'bun';
import fc from 'fast-check';
import { PART_BYTES, PARTS_MAX, partKey, partsOf, piecesOf } from '../../../src/features/uploads/rules.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { completeUpload, completion, type PreparedUpload, prepareScript, sendPart } from '../../support/uploads.ts';

const WHOLE = { is_multipart: false, part_bytes: null };
const IN_PARTS = { is_multipart: true, part_bytes: null };
const SPLITTINGS = fc.constantFrom(WHOLE, IN_PARTS, { is_multipart: true, part_bytes: 5 * 1024 ** 2 });
const file = { upload_id: 'upload', file_number: 3, path: 'map' };

describe('the parts of a file', () => {
  test('are those of the reference API: 100 MiB each, at most 10,000', () => {
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
  test.each(CASES)('of %d bytes, if parts are requested', (content_length, lengths) => {
    expect(partsOf({ ...file, content_length }, IN_PARTS)).toEqual(
      lengths.map((length, part_number) => ({
        ...file,
        part_number,
        byte_offset: part_number * PART_BYTES,
        content_length: length,
      })),
    );
  });

  test('are a single one of any length if none are requested', () => {
    for (const [content_length] of CASES) {
      expect(partsOf({ ...file, content_length }, WHOLE)).toEqual([
        { ...file, part_number: 0, byte_offset: 0, content_length },
      ]);
    }
  });

  test('follow each other without a gap, each at an address of its own', () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_000 * PART_BYTES }), SPLITTINGS, (content_length, splitting) => {
        const parts = partsOf({ ...file, content_length }, splitting);
        let end = 0;
        for (const { byte_offset, content_length: length } of parts) {
          expect(byte_offset).toBe(end);
          end += length;
        }
        expect(end).toBe(content_length);
        const keys = parts.flatMap((part) => ['a', 'b'].map((object_id) => partKey(part, object_id)));
        expect(new Set(keys).size).toBe(2 * parts.length);
      }),
      { numRuns: 50 },
    );
  });
});

describe('a range of a file', () => {
  const row = (content_length: number, object_ids: string[]) => ({
    ...file,
    content_length,
    object_ids,
    content_type: null,
    sha256: null,
    shared_upload_id: null,
    shared_file_number: null,
  });

  test('is read from the parts that contain it, each byte once and in order', () => {
    const lengths = fc.integer({ min: 1, max: 5 * PART_BYTES });
    fc.assert(
      fc.property(lengths, fc.nat(), fc.nat(), SPLITTINGS, (content_length, one, other, splitting) => {
        const parts = partsOf({ ...file, content_length }, splitting);
        const [start = 0, end = 0] = [one, other].map((at) => at % content_length).toSorted((a, b) => a - b);
        const object_ids = parts.map(({ part_number }) => `object-${part_number}`);
        let next = start;
        for (const { key, range } of piecesOf(row(content_length, object_ids), splitting, { start, end })) {
          const part = parts.find((one) => partKey(one, `object-${one.part_number}`) === key);
          if (!part) throw new Error('it is a part of the file');
          const { start: from, end: to } = range ?? { start: 0, end: part.content_length - 1 };
          expect(part.byte_offset + from).toBe(next);
          expect(to).toBeLessThan(part.content_length);
          next = part.byte_offset + to + 1;
        }
        expect(next).toBe(end + 1);
      }),
    );
  });

  test('may be the whole file, also an empty one, which is read without ranges', () => {
    expect(piecesOf(row(0, ['a']), IN_PARTS)).toEqual([{ key: 'upload/3.0.a' }]);
    expect(piecesOf(row(PART_BYTES + 1, ['a', 'b']), IN_PARTS)).toEqual([
      { key: 'upload/3.0.a' },
      { key: 'upload/3.1.b' },
    ]);
  });

  test('is read from one object if the file was completed before migration 0009', () => {
    const range = { start: 1, end: PART_BYTES };
    expect(piecesOf(row(2 * PART_BYTES, []), IN_PARTS, range)).toEqual([{ key: 'upload/3', range }]);
    expect(piecesOf(row(2 * PART_BYTES, []), IN_PARTS)).toEqual([{ key: 'upload/3' }]);
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
    `The upload is incomplete: the part of "${path}" at byte ${byte_offset} is missing. Send the missing parts, then complete it.`;
  /** Returns the objects of a file, in order. */
  function stored({ upload_id }: PreparedUpload, file_number: number): BunFile[] {
    const directory = join(muster.config.data_directory, 'objects', upload_id);
    const names = readdirSync(directory).filter((name) => name.startsWith(`${file_number}.`));
    return names.toSorted().map((name) => Bun.file(join(directory, name)));
  }

  const bytesOf = async (files: BunFile[]) => Buffer.concat(await Promise.all(files.map((file) => file.bytes())));

  async function prepareSite(files: { path: string; content_length: number }[]): Promise<PreparedUpload> {
    const { game_id, cloud_token: token } = game;
    const body = { display_name: 'Site', files };
    const answer = await muster.api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
    return { upload_id: answer.upload_id, requests: answer.presigned_requests };
  }

  test('may arrive in any order, each part twice and concurrently; what is missing is named until then', async () => {
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
    expect(sent).toEqual(['200 accepted', '200 accepted', '200 accepted']);
    expect(await sendPart(second, end)).toBe('200 accepted');
    expect(await problem(upload)).toBe(missing('large', 0));
    expect(await sendPart(first, end)).toBe('400 UPLOAD_LENGTH_MISMATCH');
    expect(await problem(upload)).toBe(missing('large', 0));
    expect(await sendPart(first, content.slice(0, PART_BYTES))).toBe('200 accepted');
    expect(await complete(upload)).toBe('200 complete');
    expect(stored(upload, 0).map(({ size }) => size)).toEqual([PART_BYTES, 5]);
    expect(Bun.hash(await bytesOf(stored(upload, 0)))).toBe(Bun.hash(content));
    expect(await sendPart(first, content.slice(0, PART_BYTES))).toBe('400 UPLOAD_INVALID');
  }, 300_000);

  test('of several files has an object for each part, and names the first missing one', async () => {
    const files = ['index.html', 'a/style.css', 'empty'].map((path) => ({ path, content_length: path.length % 5 }));
    const upload = await prepareSite(files);
    expect(upload.requests.map(({ path, byte_offset, content_length }) => [path, byte_offset, content_length])).toEqual(
      files.map(({ path, content_length }) => [path, 0, content_length]),
    );
    for (const [index, request] of upload.requests.entries()) {
      expect(await problem(upload)).toBe(missing(request.path, 0));
      expect(await sendPart(request, `${index}`.repeat(request.content_length))).toBe('200 accepted');
    }
    expect(await complete(upload)).toBe('200 complete');
    expect(await Promise.all([0, 1, 2].map((number) => bytesOf(stored(upload, number)).then(String)))).toEqual([
      '',
      '1',
      '',
    ]);
  });

  test('replaces the object of a part that is sent again', async () => {
    const upload = await prepareSite([{ path: 'a', content_length: 3 }]);
    const [request] = upload.requests;
    if (!request) throw new Error('there is one part');
    for (const content of ['one', 'two', 'six']) expect(await sendPart(request, content)).toBe('200 accepted');
    const objects = stored(upload, 0);
    expect([objects.length, (await bytesOf(objects)).toString()]).toEqual([1, 'six']);
  });

  test('counts no part of another upload or another file', async () => {
    const files = ['a', 'b'].map((path) => ({ path, content_length: 1 }));
    const [one, other] = [await prepareSite(files), await prepareSite(files)];
    for (const request of one.requests) await sendPart(request, request.path);
    expect(await complete(other)).toBe('400 UPLOAD_INCOMPLETE');
    expect(await complete(one)).toBe('200 complete');
    expect(await complete(other)).toBe('400 UPLOAD_INCOMPLETE');
  });

  test('has a list of one part if it is small', async () => {
    const { requests, ...upload } = await prepareScript(muster, game, { multipart_upload: true });
    expect(requests).toMatchObject([{ path: 'server.js', byte_offset: 0, content_length: 1 }]);
    for (const request of requests) await sendPart(request, 'x');
    expect(await complete({ ...upload, requests })).toBe('200 complete');
  });

  test('has six hours to arrive; as a single part, one hour', async () => {
    const { requests: whole } = await prepareScript(muster, game);
    const { requests: parts } = await prepareScript(muster, game, { multipart_upload: true });
    const send = async () => await Promise.all([...whole, ...parts].map((request) => sendPart(request, 'x')));
    const HOUR_MS = 3_600_000;
    expect(await send()).toEqual(['200 accepted', '200 accepted']);
    muster.clock.advance(HOUR_MS);
    expect(await send()).toEqual(['403 UPLOAD_SIGNATURE_INVALID', '200 accepted']);
    muster.clock.advance(5 * HOUR_MS);
    expect(await send()).toEqual(['403 UPLOAD_SIGNATURE_INVALID', '403 UPLOAD_SIGNATURE_INVALID']);
  });
});
