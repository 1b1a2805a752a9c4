import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { route } from '../../src/platform/http/route.ts';
import { Uuid } from '../../src/platform/http/shapes.ts';
import type { Answer } from '../support/api.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { outcomeOf } from '../support/suite.ts';

const LIMIT_BYTES = 1_048_576;
const DEPTH_MAX = 64;

const Point = Type.Object({ x: Type.Integer(), y: Type.Optional(Type.Integer()) });
const Lobby = Type.Object({
  name: Type.String({ maxLength: 20 }),
  players: Type.Optional(Type.Integer({ minimum: 1 })),
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  seats: Type.Optional(
    Type.Record(Type.String({ pattern: '^[\\s\\S]{1,4}$' }), Type.Integer(), { additionalProperties: false }),
  ),
  config: Type.Optional(Type.Unknown()),
  place: Type.Optional(Type.Object({ near: Type.Optional(Point), far: Type.Optional(Point) })),
  list: Type.Optional(Type.Array(Point)),
  by_name: Type.Optional(Type.Record(Type.String(), Type.Object({ y: Type.Optional(Type.Integer()) }))),
});

const open = { summary: 'For a test.', allow: 'anyone' } as const;
const ROUTES = [
  route('POST', '/lobbies', { ...open, body: Lobby }, async ({ body }) => ({ read: body })),
  route('POST', '/ids/:id', { ...open, body: Type.Object({ id: Uuid }) }, async ({ body, params }) => ({
    read: [body.id, params.id],
  })),
  route('POST', '/texts', { ...open, body_kind: 'text' }, async ({ text }) => ({ read: text })),
];

let app: TestApp;
beforeAll(async () => {
  app = await openTestApp(ROUTES);
});
afterAll(() => app[Symbol.asyncDispose]());

const post = (body: string, headers: Record<string, string> = {}): Promise<Answer> =>
  app.api.call('POST', '/lobbies', { body, headers });

/** Sends raw bytes with their Content-Length. */
function postBytes(bytes: Uint8Array, path = '/lobbies'): Promise<Answer> {
  const head = `POST ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: ${bytes.length}\r\n\r\n`;
  return sendRaw(app.api.base_url, head, bytes);
}

/** Sends a body in chunks, without a Content-Length. */
function postChunks(pieces: string[]): Promise<Answer> {
  const head = 'POST /lobbies HTTP/1.1\r\nHost: here\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunks = [...pieces, ''].map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  return sendRaw(app.api.base_url, head, ...chunks);
}

const nested = (depth: number): string => `{"name":"a","config":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
const name = (text: string): string => `{"name":"${text}"}`;

describe('a body is refused with API_BAD_BODY and what is wrong with it:', () => {
  const BAD: [body: string, error: RegExp][] = [
    ['{', /^it is not JSON \(.+\)$/],
    ['{"name":"a"}}', /^it is not JSON \(.+\)$/],
    ["{'name':'a'}", /^it is not JSON \(.+\)$/],
    ['{"name":"a",}', /^it is not JSON \(.+\)$/],
    ['{"name":NaN}', /^it is not JSON \(.+\)$/],
    ['{"name":"a\nb"}', /^it is not JSON \(.+\)$/],
    ['name=a&players=1', /^it is not JSON \(.+\)$/],
    [' ', /^it is not JSON \(.+\)$/],
    ['null', /^expected object$/],
    ['[]', /^expected object$/],
    ['"name"', /^expected object$/],
    ['1e999', /^expected object$/],
    ['true', /^expected object$/],
    ['', /^"name": it is missing$/],
    ['{}', /^"name": it is missing$/],
    ['{"Name":"a"}', /^"name": it is missing$/],
    ['{"name":null}', /^"name": expected string$/],
    ['{"name":1}', /^"name": expected string$/],
    ['{"name":["a"]}', /^"name": expected string$/],
    [name('x'.repeat(21)), /^"name": expected string length less or equal to 20$/],
    ['{"name":"a","players":"1"}', /^"players": expected integer$/],
    ['{"name":"a","players":1.5}', /^"players": expected integer$/],
    ['{"name":"a","players":0}', /^"players": expected integer to be greater or equal to 1$/],
    ['{"name":"a","players":"1"}', /^"players": expected integer$/],
    ['{"name":"a","players":1e400}', /^"players": expected integer$/],
    ['{"name":"a","tags":{"b":1}}', /^"tags.b": expected string$/],
    ['{"name":"a","tags":[]}', /^"tags": expected object$/],
    ['{"name":"a","seats":{"lobby":1}}', /^"seats.lobby": expected a name that matches \^\[\\s\\S\]\{1,4\}\$$/],
    [nested(DEPTH_MAX + 1), /^it nests deeper than 64 levels$/],
    ['['.repeat(500_000), /^it nests deeper than 64 levels$/],
    ['{"a":'.repeat(100_000), /^it nests deeper than 64 levels$/],
    [name('\\u0000'), /^it has a text with the character zero or half a character/],
    [name('\\ud800'), /^it has a text with the character zero or half a character/],
    [name('\\udc00\\ud800'), /^it has a text with the character zero or half a character/],
    ['{"name":"a","tags":{"\\u0000":"b"}}', /^it has a text with the character zero or half a character/],
    ['{"name":"a","config":[{"b":["\\uDFFF"]}]}', /^it has a text with the character zero or half a character/],
    ['{"name":"a","__proto__":{"players":1}}', /^it has a member named __proto__$/],
    ['{"__proto__":{"name":"a"}}', /^it has a member named __proto__$/],
    ['{"name":"a","config":[{"\\u005f_proto__":null}]}', /^it has a member named __proto__$/],
  ];
  test.each(BAD.map(([body, error]): [string, string, RegExp] => [body.slice(0, 60), body, error]))(
    '%j',
    async (_shown, body, error) => {
      const answer = await post(body);
      expect([answer.status, answer.body.code]).toEqual([400, 'API_BAD_BODY']);
      const [, problem = ''] = /^The request body is invalid: (.*)\.$/.exec(answer.body.message) ?? [];
      expect(problem).toMatch(error);
    },
  );

  const BYTES: [name: string, bytes: number[]][] = [
    ['a byte that UTF-8 never contains', [0xff]],
    ['a truncated character', [0xe2, 0x82]],
    ['an overlong encoding of a character', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['UTF-16', [0xff, 0xfe, 0x61, 0x00]],
  ];
  test.each(BYTES)('%s', async (_name, bytes) => {
    const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]);
    for (const path of ['/lobbies', '/texts']) {
      const answer = await postBytes(body, path);
      expect([answer.status, answer.body.code, answer.body.message]).toEqual([
        400,
        'API_BAD_BODY',
        'The request body is invalid: it is not UTF-8.',
      ]);
    }
  });

  test('a compressed body, which is not unpacked', async () => {
    const bytes = Bun.gzipSync(Buffer.from(name('a')));
    const head = `POST /lobbies HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: ${bytes.length}\r\n\r\n`;
    const { status, body } = await sendRaw(app.api.base_url, head, bytes);
    expect([status, body.code]).toEqual([400, 'API_BAD_BODY']);
  });

  test('a body with several errors, with the path of each', async () => {
    const { body } = await post('{"players":0,"tags":{"b":1}}');
    expect(body.metadata).toEqual({
      errors: [
        { path: ['name'], message: 'It is missing' },
        { path: ['players'], message: 'Expected integer to be greater or equal to 1' },
        { path: ['tags', 'b'], message: 'Expected string' },
      ],
    });
  });
});

/** UUIDs of any version, in lower or upper case. */
const anyUuid = fc.tuple(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.boolean()).map(([bytes, is_upper]) => {
  const uuid = bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return is_upper ? uuid.toUpperCase() : uuid;
});

test('ids: a body accepts every id that a path accepts, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(anyUuid, async (id) => {
      const { status, body } = await app.api.call('POST', `/ids/${id}`, { body: { id } });
      expect([status, body]).toEqual([200, { read: [id, id.toLowerCase()] }]);
    }),
  );
  for (const id of ['', 'x', `${crypto.randomUUID()}0`, crypto.randomUUID().replaceAll('-', '')]) {
    const { status, body } = await app.api.call('POST', `/ids/${crypto.randomUUID()}`, { body: { id } });
    expect([status, body.code]).toEqual([400, 'API_BAD_BODY']);
  }
});

describe('a body that is too large is refused with API_BODY_TOO_LARGE', () => {
  const expectTooLarge = ({ status, body }: Answer) =>
    expect([status, body.code, body.message]).toEqual([
      413,
      'API_BODY_TOO_LARGE',
      'The request body is larger than 1048576 bytes. Send a smaller one.',
    ]);

  test('by one byte', async () => {
    expectTooLarge(await post(' '.repeat(LIMIT_BYTES + 1)));
  });

  test('by its Content-Length alone', async () => {
    const head = `POST /lobbies HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: ${2 ** 30}\r\n\r\n{}`;
    expectTooLarge(await sendRaw(app.api.base_url, head));
  });

  test('if its Content-Length is repeated', async () => {
    const length = `Content-Length: ${2 ** 30}`;
    const head = `POST /lobbies HTTP/1.1\r\nHost: here\r\nConnection: close\r\n${length}\r\n${length}\r\n\r\n`;
    expectTooLarge(await sendRaw(app.api.base_url, head, Buffer.alloc(LIMIT_BYTES + 1, ' ')));
  });

  test('if it has no Content-Length', async () => {
    expectTooLarge(await postChunks(Array.from({ length: 17 }, () => ' '.repeat(65_536))));
  });

  test('but not a body of exactly the maximum length', async () => {
    const text = name('a').padEnd(LIMIT_BYTES);
    expect((await post(text)).body).toEqual({ read: { name: 'a' } });
    expect((await postChunks(text.match(/.{1,65536}/g) ?? [])).body).toEqual({ read: { name: 'a' } });
  });
});

describe('a body is accepted', () => {
  const GOOD: [body: string, read: object][] = [
    ['{"name":"a"}', { name: 'a' }],
    [' \n{"name" : "a"}\t', { name: 'a' }],
    ['\ufeff{"name":"a"}', { name: 'a' }],
    ['{"name":"a","name":"b"}', { name: 'b' }],
    ['{"name":"a","unknown":[1]}', { name: 'a', unknown: [1] }],
    ['{"name":"\\ud83d\\ude00 ä \\\\u0000"}', { name: '😀 ä \\u0000' }],
    [
      '{"name":"__proto__","tags":{"constructor":"__proto__"}}',
      { name: '__proto__', tags: { constructor: '__proto__' } },
    ],
    [nested(DEPTH_MAX), JSON.parse(nested(DEPTH_MAX))],
    ['{"name":"[[[\\"{{{","config":"]"}', { name: '[[["{{{', config: ']' }],
  ];
  test.each(GOOD)('%j', async (body, read) => {
    expect((await post(body)).body).toEqual({ read });
  });

  test('with its Content-Length twice', async () => {
    const body = name('a');
    const length = `Content-Length: ${body.length}`;
    const head = `POST /lobbies HTTP/1.1\r\nHost: here\r\nConnection: close\r\n${length}\r\n${length}\r\n\r\n`;
    expect((await sendRaw(app.api.base_url, head, body)).body).toEqual({ read: { name: 'a' } });
  });

  test('with any content type', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
    ]) {
      expect((await post(name('a'), { 'content-type': type })).body).toEqual({ read: { name: 'a' } });
    }
  });

  test('with null for optional members, which counts as left out, also in nested objects and lists', async () => {
    const nulls = { players: null, tags: null, seats: null, config: null };
    const place = { near: null, far: { x: 1, y: null } };
    const body = JSON.stringify({
      name: 'a',
      ...nulls,
      place,
      list: [{ x: 1, y: null }],
      by_name: { one: { y: null } },
    });
    // Any JSON is accepted as a config, so this null is a value.
    const read = { name: 'a', config: null, place: { far: { x: 1 } }, list: [{ x: 1 }], by_name: { one: {} } };
    expect((await post(body)).body).toEqual({ read });
  });

  test('but not with null for members that are required, or for values of a map', async () => {
    for (const body of [
      '{"name":null}',
      '{"name":"a","tags":{"map":null}}',
      '{"name":"a","place":{"far":{"x":null}}}',
    ]) {
      expect([body, outcomeOf(await post(body))]).toEqual([body, '400 API_BAD_BODY']);
    }
    expect((await post('{"name":null,"players":null}')).body.metadata.errors).toEqual([
      { path: ['name'], message: 'Expected string' },
    ]);
  });

  test('unchanged, where any JSON is accepted', async () => {
    const text = '{"__proto__": 1, "a":"\\u0000\\ud800", "a":2}';
    expect((await app.api.call('POST', '/texts', { body: text })).body).toEqual({ read: text });
  });
});

test('bodies: no content makes the service fail', async () => {
  const piece = fc.oneof(
    fc.json().map((text) => Buffer.from(text)),
    fc.uint8Array(),
    fc
      .constantFrom('{', '}', '[', ']', '"', '\\', '{"name":"', ':', ',', '\\u0000', '__proto__', '\0')
      .map(Buffer.from),
  );
  const bodies = fc.array(piece, { maxLength: 8 }).map((pieces) => Buffer.concat(pieces));
  await fc.assert(
    fc.asyncProperty(bodies, fc.constantFrom('/lobbies', '/texts'), async (bytes, path) => {
      const response = await fetch(`${app.api.base_url}${path}`, { method: 'POST', body: bytes });
      expect([200, 400]).toContain(response.status);
      const { code = 'API_BAD_BODY' } = await response.json();
      expect(code).toBe('API_BAD_BODY');
    }),
    { numRuns: 500 },
  );
});
