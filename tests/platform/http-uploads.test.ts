import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { makeGame, type TestGame } from '../support/game.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

let muster: TestService;
let game: TestGame;
beforeAll(async () => {
  muster = await openTestService();
  game = await makeGame(muster.api, muster.administrator_token);
});
afterAll(() => muster[Symbol.asyncDispose]());

const SOURCE = 'setInterval(() => {}, 1e9);';

/** Prepares an upload of one file with the length of SOURCE. */
async function prepare(): Promise<{ url: string; target: string; files(): string[]; complete(): Promise<string> }> {
  const { game_id, namespace_id, cloud_token: token } = game;
  const builds = `/games/${game_id}/environments/${namespace_id}/builds`;
  const image_file = { path: 'server.js', content_length: SOURCE.length };
  const body = { name: 'Test build', kind: 'javascript', image_file };
  const prepared = await muster.api.ok('POST', `${builds}/prepare`, { token, body });
  const { url } = prepared.image_presigned_request;
  const { pathname, search } = new URL(url);
  const directory = join(muster.config.data_directory, 'objects', pathname.split('/').at(-1) ?? '');
  return {
    url,
    target: pathname + search,
    files() {
      try {
        return readdirSync(directory);
      } catch {
        return [];
      }
    },
    async complete() {
      const { status, body: answer } = await muster.api.post(`${builds}/${prepared.build}/complete`, token);
      return `${status} ${answer.code ?? 'complete'}`;
    },
  };
}

/** Sends a body to an address, and returns the status and code of the answer. */
async function put(url: string, body: string, method = 'PUT'): Promise<string> {
  const { status, body: answer } = await muster.api.call(method, url, { body });
  return `${status} ${answer.code ?? 'accepted'}`;
}

const headOf = (target: string, headers: string): string =>
  `PUT ${target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n${headers}\r\n\r\n`;

describe('an uploaded file is refused, and no part of it is kept,', () => {
  test('if its address was altered', async () => {
    const { url, target, files } = await prepare();
    for (const altered of [
      `${url}0`,
      url.slice(0, -1),
      url.replace('length=', 'length=1'),
      url.split('&signature')[0] ?? '',
    ]) {
      expect(await put(altered, SOURCE)).toBe('403 UPLOAD_SIGNATURE_INVALID');
    }
    const length = `Content-Length: ${SOURCE.length}`;
    const { status, body } = await sendRaw(
      muster.api.base_url,
      headOf(target.replace('/uploads', '//uploads'), length),
      SOURCE,
    );
    expect([status, body.code]).toEqual([404, 'API_NOT_FOUND']);
    expect(files()).toEqual([]);
  });

  test('if its address is used with another method or without its signature', async () => {
    const { url, files } = await prepare();
    for (const method of ['POST', 'PATCH', 'DELETE'])
      expect(await put(url, SOURCE, method)).toBe('400 API_METHOD_NOT_ALLOWED');
    expect(await put(new URL(url).pathname, SOURCE)).toBe('403 UPLOAD_SIGNATURE_INVALID');
    expect(files()).toEqual([]);
  });

  test('if it is longer or shorter than its upload, with a Content-Length or without', async () => {
    const { url, target, files, complete } = await prepare();
    for (const body of ['', SOURCE.slice(1), `${SOURCE} `, SOURCE.repeat(100_000)]) {
      expect(await put(url, body)).toBe('400 UPLOAD_LENGTH_MISMATCH');
    }
    const chunks = [SOURCE, SOURCE, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    const { status, body } = await sendRaw(
      muster.api.base_url,
      headOf(target, 'Transfer-Encoding: chunked'),
      ...chunks,
    );
    expect([status, body.code]).toEqual([400, 'UPLOAD_LENGTH_MISMATCH']);
    expect(files()).toEqual([]);
    expect(await complete()).toBe('400 UPLOAD_INCOMPLETE');
  });

  test('if the sender disconnects; the upload may then be repeated', async () => {
    const { url, target, files, complete } = await prepare();
    const { hostname, port } = new URL(muster.api.base_url);
    const socket = connect(Number(port), hostname);
    socket.write(`${headOf(target, `Content-Length: ${SOURCE.length}`)}${SOURCE.slice(0, 10)}`);
    const unfinished = () => readdirSync(join(muster.config.data_directory, 'objects/.unfinished'));
    await waitFor(() => unfinished().length === 1, 'the first bytes to be written');
    socket.destroy();
    await waitFor(() => unfinished().length === 0 && files().length === 0, 'the bytes to be removed');
    expect(await complete()).toBe('400 UPLOAD_INCOMPLETE');
    expect(await put(url, SOURCE)).toBe('200 accepted');
    expect(await complete()).toBe('200 complete');
  });

  test('if its address has expired', async () => {
    const { url, files } = await prepare();
    muster.clock.advance(3_600_000 + 1);
    expect(await put(url, SOURCE)).toBe('403 UPLOAD_SIGNATURE_INVALID');
    expect(files()).toEqual([]);
  });

  test('if its upload is already complete', async () => {
    const { url, files, complete } = await prepare();
    await put(url, SOURCE);
    expect(await complete()).toBe('200 complete');
    const before = files();
    expect(await put(url, SOURCE)).toBe('400 UPLOAD_INVALID');
    expect(files()).toEqual(before);
  });
});

describe('an uploaded file is accepted', () => {
  test('again until its upload is complete; the last one counts', async () => {
    const { url, files, complete } = await prepare();
    expect(await put(url, SOURCE.toUpperCase())).toBe('200 accepted');
    expect(await put(url, SOURCE)).toBe('200 accepted');
    expect(files()).toHaveLength(1);
    expect(await complete()).toBe('200 complete');
  });

  test('from a page of any origin, because its address is the permission', async () => {
    const { url } = await prepare();
    const { status, headers } = await muster.api.call('PUT', url, {
      body: SOURCE,
      headers: { origin: 'https://any.example' },
    });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, 'https://any.example']);
  });
});
