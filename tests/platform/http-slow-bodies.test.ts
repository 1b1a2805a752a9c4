import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { Type } from '@sinclair/typebox';
import { route } from '../../src/platform/http/route.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { waitFor } from '../support/wait.ts';

const DRIP_EVERY_MS = 50;
const summary = 'For a test.';
const body = Type.Object({ name: Type.String() });

let app: TestApp;
let uploads_begun = 0;
beforeAll(async () => {
  app = await openTestApp(
    [
      route('POST', '/matchmaker/read', { summary, allow: 'anyone', body }, async () => ({})),
      route('POST', '/matchmaker/unread', { summary, allow: 'anyone' }, async () => ({})),
      route('POST', '/matchmaker/private', { summary, allow: ['cloud'], body }, async () => ({})),
      route('PUT', '/uploads/x', { summary, allow: 'anyone', body_kind: 'stream' }, async ({ request }) => {
        uploads_begun += 1;
        for await (const _ of request.body ?? []);
        return {};
      }),
      route('PUT', '/uploads/refused', { summary, allow: 'anyone', body_kind: 'stream' }, async () => {
        throw new Error('for a test');
      }),
    ],
    // A body has two fifths of it.
    { request_timeout_ms: 1_000 },
  );
});
afterAll(() => app[Symbol.asyncDispose]());

interface Client extends Disposable {
  received(): string;
  readonly is_closed: boolean;
  write(text: string): void;
}

function openClient(): Client {
  const { hostname, port } = new URL(app.api.base_url);
  const socket = connect(Number(port), hostname);
  const received: Buffer[] = [];
  let is_closed = false;
  socket.on('data', (bytes: Buffer) => void received.push(bytes));
  socket.on('error', () => {});
  socket.on('close', () => {
    is_closed = true;
  });
  return {
    received: () => Buffer.concat(received).toString(),
    get is_closed() {
      return is_closed;
    },
    write: (text) => void socket.write(text),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

const headOf = (method: string, path: string, framing: string) =>
  `${method} ${path} HTTP/1.1\r\nHost: play.example.com\r\n${framing}\r\n\r\n`;
const FRAMINGS: [name: string, framing: string, piece: string][] = [
  ['announced', 'Content-Length: 100000', ' '],
  ['chunked', 'Transfer-Encoding: chunked', '1\r\n \r\n'],
];

describe.each(FRAMINGS)('a body that arrives byte by byte (%s)', (_, framing, piece) => {
  const CASES: [method: string, path: string, code: string][] = [
    ['POST', '/matchmaker/read', 'API_BODY_TIMEOUT'],
    ['POST', '/matchmaker/unread', '200 OK'],
    ['POST', '/matchmaker/private', 'API_UNAUTHORIZED'],
    ['POST', '/nothing', 'API_NOT_FOUND'],
    ['PUT', '/uploads/refused', 'ERROR'],
  ];
  test.each(CASES)('%s %s: is answered, and its connection closed', async (method, path, code) => {
    using client = openClient();
    client.write(headOf(method, path, framing));
    const dripping = setInterval(() => client.write(piece), DRIP_EVERY_MS);
    try {
      await waitFor(() => client.is_closed, 'the connection to be closed', 10_000);
    } finally {
      clearInterval(dripping);
    }
    expect(client.received()).toContain(code);
    expect(client.received()).toMatch(/^connection: close\r$/im);
  });
});

describe('a connection is kept', () => {
  const WHOLE: [name: string, request: string][] = [
    ['when a body was read', `${headOf('POST', '/matchmaker/read', 'Content-Length: 12')}{"name":"a"}`],
    [
      'when a body that is not needed came with its head',
      `${headOf('POST', '/matchmaker/unread', 'Content-Length: 2')}{}`,
    ],
    ['when a refused body came with its head', `${headOf('POST', '/matchmaker/private', 'Content-Length: 2')}{}`],
    ['when an upload was read', `${headOf('PUT', '/uploads/x', 'Content-Length: 2')}ab`],
    ['when there is no body', `${headOf('POST', '/matchmaker/unread', 'Content-Length: 0')}`],
  ];
  test.each(WHOLE)('%s', async (_, request) => {
    using client = openClient();
    for (const answers of [1, 2]) {
      client.write(request);
      await waitFor(() => client.received().split('HTTP/1.1 ').length === answers + 1, 'an answer');
    }
    expect(client.received()).not.toMatch(/^connection: close/im);
    expect(client.is_closed).toBe(false);
  });
});

test.each(FRAMINGS)('a body that its client cuts off (%s) is a fault of the client', async (_, framing) => {
  const client = openClient();
  const [before, begun_before] = [app.events.length, uploads_begun];
  client.write(headOf('PUT', '/uploads/x', framing));
  await waitFor(() => uploads_begun > begun_before, 'the upload to begin');
  client[Symbol.dispose]();
  const events = await waitFor(() => app.events.length > before && app.events.slice(before), 'the request to end');
  expect(events).toMatchObject([{ event: 'request_served', route: '/uploads/x', status: 400 }]);
});
