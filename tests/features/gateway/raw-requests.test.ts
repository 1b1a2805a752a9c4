import { beforeAll, describe, expect, test } from 'bun:test';
import { connect as connectTls } from 'node:tls';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { makeGame, uploadScript } from '../../support/game.ts';
import { SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { certifyLocalhost } from '../../support/relayed.ts';
import { shareService } from '../../support/suite.ts';

/** A server that reads requests byte by byte, keeps connections open, and returns at /seen what it has got since the last time. */
const RAW_SERVER = `
let seen = [];
const isWhole = (text) => {
  const [head, ...rest] = text.split('\\r\\n\\r\\n');
  const body = rest.join('\\r\\n\\r\\n');
  if (rest.length === 0) return false;
  if (/transfer-encoding: chunked/i.test(head)) return body.endsWith('0\\r\\n\\r\\n');
  return body.length >= Number(/content-length: (\\d+)/i.exec(head)?.[1] ?? 0);
};
Bun.listen({
  hostname: '0.0.0.0',
  port: Number(process.env.PORT_web),
  socket: {
    data(socket, bytes) {
      socket.data = (socket.data ?? '') + bytes.toString('latin1');
      if (!isWhole(socket.data)) return;
      const is_control = socket.data.startsWith('GET /seen ');
      if (!is_control) seen.push(socket.data);
      socket.data = '';
      const answer = is_control ? JSON.stringify(seen.splice(0)) : 'ok';
      socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: ' + answer.length + '\\r\\n\\r\\n' + answer);
    },
  },
});
console.log('listening');
`;
const { settings } = await certifyLocalhost();

const muster = shareService({ ...settings, MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });
let host: string;
beforeAll(async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const build = await uploadScript(muster.api, game, RAW_SERVER);
  host = `${(await startWebServer(muster, game, { build })).name}.${SERVERS_DOMAIN}`;
}, 300_000);

/** Sends the lines of a head, in which HOST is the server's name, and a body. Returns the answer, and what the server got. */
async function sendLines(lines: string[], body = '') {
  const text = `${lines.join('\r\n')}\r\n\r\n${body}`.replaceAll('HOST', host);
  const { status } = await sendRaw(muster.config.local_url, text);
  const control = await fetch(`${muster.config.local_url}/seen`, { headers: { host } });
  return { status, seen: (await control.json()) as string[] };
}

const get = (...lines: string[]) => ['GET /a HTTP/1.1', 'Host: HOST', ...lines, 'Connection: close'];
const post = (...lines: string[]) => ['POST /a HTTP/1.1', 'Host: HOST', ...lines, 'Connection: close'];
const CHUNKED = 'Transfer-Encoding: chunked';
const HELLO = '5\r\nhello\r\n0\r\n\r\n';
/** What an attacker would like a server to take for a request. */
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n';

/** Methods whose bodies Bun drops. */
const BODILESS = ['GET', 'HEAD'];

type Refused = [name: string, lines: string[], body?: string, status?: number];
const REFUSED: Refused[] = [
  ['a length and chunks', post('Content-Length: 5', CHUNKED), `0\r\n\r\n${SMUGGLED}`],
  ['chunks and a length', post(CHUNKED, 'Content-Length: 5'), `0\r\n\r\n${SMUGGLED}`],
  ['two lengths', post('Content-Length: 5', 'Content-Length: 6'), 'hello'],
  ...['5, 5', '5, 6', '+5', '-5', '0x5', '5a', '5.0', '', '99999999999999999999999'].map(
    (length): Refused => [`the length "${length}"`, post(`Content-Length: ${length}`), 'hello'],
  ),
  ...['identity', 'gzip', 'xchunked', 'chunked, identity', 'chunked, chunked', 'gzip, chunked', '"chunked"'].map(
    (coding): Refused => [`the coding ${coding}`, post(`Transfer-Encoding: ${coding}`), HELLO],
  ),
  ['two codings', post(CHUNKED, 'Transfer-Encoding: identity'), HELLO],
  ...['0x5', '-5', 'zz', 'fffffffffffffffff', '5 ', '', '3', '5;\nx'].map(
    (size): Refused => [`the chunk size ${JSON.stringify(size)}`, post(CHUNKED), `${size}\r\nhello\r\n0\r\n\r\n`],
  ),
  ['chunks with bare line feeds', post(CHUNKED), '5\nhello\n0\n\n'],
  ['a chunk without its end', post(CHUNKED), '5\r\nhelloX0\r\n\r\n'],
  ...BODILESS.flatMap((method): Refused[] => [
    [`a body of ${method}`, [`${method} /a HTTP/1.1`, ...post('Content-Length: 5').slice(1)], 'hello'],
    [`chunks of ${method}`, [`${method} /a HTTP/1.1`, ...post(CHUNKED).slice(1)], HELLO],
  ]),
  ['a request in the body of a GET', get('Content-Length: 115'), SMUGGLED.padEnd(72)],
  ['a folded header', get('X-A: 1', ' folded')],
  ['a folded coding', post('Transfer-Encoding:', ' chunked'), HELLO],
  ['a header that begins with a space', ['GET /a HTTP/1.1', ' X-A: 1', 'Host: HOST']],
  ['a bare carriage return in a value', get('X-A: 1\rX-B: 2')],
  ['a bare line feed in a value', get('X-A: 1\nX-B: 2')],
  ['a NUL in a value', get('X-A: 1\0')],
  ['a space before a colon', get('X-A : 1')],
  ['a coding with a space before its colon', post('Transfer-Encoding : chunked'), HELLO],
  ['a length with a space before its colon', post('Content-Length : 5'), 'hello'],
  ['a space in the name of a header', get('X A: 1')],
  ['a header without a name', get(': 1')],
  ['a header without a colon', get('nonsense')],
  ['two hosts', get('Host: other.example.com')],
  ['the same host twice', get('Host: HOST')],
  ['no host', ['GET /a HTTP/1.1', 'Connection: close']],
  ...['', 'HOST@other.example.com', 'other.example.com/HOST', 'HOST other', 'HOST#', 'HOST?', 'HOST:99999'].map(
    (name): Refused => [`the host "${name}"`, ['GET /a HTTP/1.1', `Host: ${name}`, 'Connection: close']],
  ),
  ['the name of no port', ['GET /a HTTP/1.1', 'Host: x.HOST', 'Connection: close'], '', 404],
  ['chunks of HTTP/1.0', ['POST /a HTTP/1.0', 'Host: HOST', CHUNKED], HELLO],
  ['HTTP/2.0', ['GET /a HTTP/2.0', 'Host: HOST'], '', 505],
  ['a version with more', ['GET /a HTTP/1.1x', 'Host: HOST'], '', 505],
  ['a space in the target', ['GET /a b HTTP/1.1', 'Host: HOST'], '', 505],
  ['lines that end without carriage returns', ['GET /a HTTP/1.1\nHost: HOST\n\n'], '', 505],
  ['a method that is no token', ['G@T /a HTTP/1.1', 'Host: HOST']],
  ['a head of 70 kB', get(`X-A: ${'a'.repeat(70_000)}`), '', 431],
  ['300 headers', get(...Array.from({ length: 300 }, (_, index) => `X-${index}: 1`)), '', 431],
];

describe('gateway: refuses, and passes nothing of it to the server:', () => {
  for (const [name, lines, body, status = 400] of REFUSED) {
    test(name, async () => {
      expect(await sendLines(lines, body)).toEqual({ status, seen: [] });
    });
  }
});

/** `ends`: how the request ends that the server gets. */
const PASSED: [name: string, lines: string[], body: string, ends: string][] = [
  ['a body with a length', post('Content-Length: 5'), 'hello', '\r\n\r\nhello'],
  ['the same length twice', post('Content-Length: 5', 'Content-Length: 5'), 'hello', '\r\n\r\nhello'],
  ['a length with zeros before it', post('Content-Length: 05'), 'hello', '\r\n\r\nhello'],
  ['chunks', post('Transfer-Encoding: Chunked'), HELLO, `\r\n\r\n${HELLO}`],
  ['chunks with extensions', post(CHUNKED), '5;a=b\r\nhello\r\n0\r\n\r\n', `\r\n\r\n${HELLO}`],
  ['a length that Connection lists', post('Connection: content-length, host', 'Content-Length: 5'), 'hello', HELLO],
  ['a GET whose body is empty', get('Content-Length: 0'), '', '\r\n\r\n'],
  [
    'another host in the target: the header counts',
    ['GET http://other.example.com/a HTTP/1.1', ...get().slice(1)],
    '',
    '\r\n\r\n',
  ],
  ['an upgrade to something else', get('Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'), '', '\r\n\r\n'],
  ['HTTP/1.0', ['GET /a HTTP/1.0', 'Host: HOST'], '', '\r\n\r\n'],
];

describe('gateway: passes one well-formed request to the server:', () => {
  for (const [name, lines, body, ends] of PASSED) {
    test(name, async () => {
      const { status, seen } = await sendLines(lines, body);
      expect([status, seen.length]).toEqual([200, 1]);
      const [request = ''] = seen;
      const [head = ''] = request.split('\r\n\r\n');
      expect(request).toStartWith(`${lines[0]?.slice(0, 4).trim()} /a HTTP/1.1\r\n`);
      expect(request).toEndWith(ends);
      expect(request).not.toContain('smuggled');
      const names = head
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(':')[0]?.toLowerCase());
      expect(names).toEqual([...new Set(names)]);
      expect(head.toLowerCase()).toContain(`\r\nhost: ${host}`);
      expect(names).not.toContain('upgrade');
      expect(names.filter((one) => one === 'content-length' || one === 'transfer-encoding').length).toBeLessThan(2);
    });
  }
});

test('gateway: an answer without a type gets none, so that browsers find it out', async () => {
  const request = `GET /seen HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  const { status, headers } = await sendRaw(muster.config.local_url, request);
  expect([status, headers.get('content-type')]).toEqual([200, null]);
});

// The server may get the first part of these, also after the answer, with its length or in a chunk.
const FIRST_PART = /\r\nx-forwarded-for: 127\.0\.0\.1\r\n.*\r\n\r\n(hello|5\r\nhello\r\n0\r\n\r\n)$/s;
const FOLLOWED: [name: string, lines: string[], body: string, status: number][] = [
  ['trailers', post(CHUNKED), '5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n', 400],
  ['a request after the last', post('Content-Length: 5'), `hello${SMUGGLED}`, 200],
  ['a request before the answer', post('Content-Length: 5').slice(0, -1), `hello${SMUGGLED}`, Number.NaN],
];

describe('gateway: closes the connection, and takes nothing for a part of a whole request, after', () => {
  for (const [name, lines, body, status] of FOLLOWED) {
    test(name, async () => {
      const answer = await sendLines(lines, body);
      expect(answer.status).toEqual(status);
      for (const request of answer.seen) expect(request).toMatch(FIRST_PART);
    });
  }
});

// A head may take 12 s, so this runs only at full length.
test.skipIf(!IS_FULL_LENGTH)(
  'gateway: a connection by TLS with a slow head is closed',
  async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(settings.MUSTER_HTTPS_PORT),
      servername: host,
      rejectUnauthorized: false,
    });
    let received = '';
    socket.on('data', (bytes) => {
      received += String(bytes);
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    socket.write(`GET /a HTTP/1.1\r\nHost: ${host}\r\n`);
    const dripping = setInterval(() => socket.write('X-More: 1\r\n'), 1_000);
    expect(await promise).toBe('');
    clearInterval(dripping);
  },
  300_000,
);
