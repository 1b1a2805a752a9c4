import { expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiCaller } from '../../src/cli/api-caller.ts';
import { Failure } from '../../src/terminal/failure.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { COMMAND } from '../support/program.ts';
import { rejectionOf } from '../support/refusal.ts';

const head = (length: number, type = 'application/json') =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`;
const CUT = `${head(100)}{"games": [`;
const WHOLE = `${head(2)}{}`;

/** A service that gives prepared answers, one to each connection, and then closes it. */
function openService(answers: string[]) {
  const requests: string[] = [];
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        requests.push(bytes.toString().split('\r\n')[0] ?? '');
        socket.write(answers.shift() ?? WHOLE);
        socket.end();
      },
    },
  });
  const api = new ApiCaller(`http://127.0.0.1:${server.port}`, 'token');
  return { api, requests, [Symbol.dispose]: () => server.stop(true) };
}

test('api: a read whose answer is cut off is repeated', async () => {
  using service = openService([CUT, CUT, WHOLE]);
  expect(await service.api.get<object>('/cloud/games')).toEqual({});
  expect(service.requests).toHaveLength(3);
}, 300_000);

test('api: an answer that is cut off each time, and a cut-off answer to a change, end in a message', async () => {
  using reading = openService([CUT, CUT, CUT, CUT, CUT]);
  const read = await rejectionOf(Failure, reading.api.get('/cloud/games'));
  expect([read.exit_code, read.message]).toEqual([1, expect.stringContaining('cannot be reached')]);
  using changing = openService([CUT]);
  const changed = await rejectionOf(Failure, changing.api.call('POST', '/cloud/games'));
  expect([changed.exit_code, changing.requests.length]).toEqual([1, 1]);
}, 300_000);

test('watch: goes on after a restart of the service', async () => {
  const answerOf = (index: string) => {
    const body = `{"watch":{"index":"${index}"}}`;
    return `${head(body.length)}${body}`;
  };
  // Five requests fail. Then a body without an index ends the watch.
  using service = openService([answerOf('one'), CUT, CUT, CUT, CUT, CUT, answerOf('two'), WHOLE]);
  const home = await mkdtemp(join(tmpdir(), 'muster-watching-'));
  const child = Bun.spawn([...COMMAND, 'watch', '/any', '--url', service.api.url], {
    env: { HOME: home },
    cwd: home,
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).watch.index)).toEqual(['one', 'two']);
  expect(await child.exited).toBe(2);
  await rm(home, { recursive: true });
}, 300_000);

test('api: an answer that is no JSON is refused, but can be read as it is', async () => {
  using service = openService([`${head(5, 'text/plain')}hello`, `${head(5, 'text/plain')}hello`]);
  const refused = await rejectionOf(Failure, service.api.get('/metrics'));
  expect(refused.message).toContain('did not answer as Muster does');
  expect(await service.api.callForText('GET', '/metrics')).toBe('hello');
}, 300_000);

test('api: the page of another program is not shown as an error, and a proxy without its service is named', async () => {
  const page = '<!DOCTYPE html><title>Error</title>';
  const answer = (status: string) =>
    `HTTP/1.1 ${status}\r\ncontent-type: text/html\r\ncontent-length: ${page.length}\r\nconnection: close\r\n\r\n${page}`;
  const REFUSED: [status: string, code: string, message: string][] = [
    ['404 Not Found', 'HTTP_404', 'did not answer as Muster does (status 404). Check the address'],
    ['401 Unauthorized', 'HTTP_401', 'did not answer as Muster does (status 401). Check the address'],
    ['502 Bad Gateway', 'HTTP_502', 'answered 502: is the service behind it running?'],
  ];
  for (const [status, code, message] of REFUSED) {
    using service = openService([answer(status), answer(status), answer(status), answer(status)]);
    const refused = await rejectionOf(Failure, service.api.get('/cloud/games'));
    expect([refused.exit_code, refused.refusal?.code, refused.message]).toEqual([
      1,
      code,
      expect.stringContaining(message),
    ]);
    expect(refused.message).not.toContain('<');
  }
}, 300_000);

test('api: a certificate that is not trusted is named, with what to do', async () => {
  const { certificate, key } = await makeCertificate(['localhost']);
  const server = Bun.serve({
    port: 0,
    hostname: 'localhost',
    tls: { cert: certificate, key },
    fetch: () => Response.json({}),
  });
  const api = new ApiCaller(`https://localhost:${server.port}`, 'token');
  const refused = await rejectionOf(Failure, api.get('/cloud/games'));
  await server.stop(true);
  expect(refused.message).toContain('is not trusted here');
  expect(refused.message).toContain('NODE_EXTRA_CA_CERTS');
}, 300_000);

test.skipIf(!IS_FULL_LENGTH)(
  'api: a part of an upload whose storage cannot be reached names the address of the storage',
  async () => {
    const api = new ApiCaller('https://play.example.com', 'token');
    using storage = openService(Array.from({ length: 7 }, () => CUT));
    const refused = await rejectionOf(
      Failure,
      api.sendPart(`${storage.api.url}/part?signature=secret`, new Uint8Array(1)),
    );
    expect(refused.message).toStartWith(`${storage.api.url} cannot be reached`);
    expect(refused.message).not.toContain('play.example.com');
  },
  300_000,
);
