import { afterAll, beforeAll, expect, test } from 'bun:test';
import { makeGame, uploadScript } from '../../support/game.ts';
import { SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { makeHome, type Program } from '../../support/program.ts';
import { waitFor } from '../../support/wait.ts';

/** A server that answers each request with the bytes that its path has in base64, and closes the connection. */
const PARROT = `
Bun.listen({
  hostname: '0.0.0.0',
  port: Number(process.env.PORT_web),
  socket: {
    data(socket, bytes) {
      const [, path] = bytes.toString('latin1').split(' ');
      socket.end(Buffer.from(path.slice(1), 'base64url'));
    },
  },
});
console.log('listening');
`;

const opened = new AsyncDisposableStack();
let program: Program;
let host: string;
beforeAll(async () => {
  const home = opened.use(
    await makeHome({ MUSTER_DEMO: 'off', MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN }, { has_prepared_database: true }),
  );
  program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const build = await uploadScript(program.api, game, PARROT);
  host = `${(await startWebServer(program, game, { build })).name}.${SERVERS_DOMAIN}`;
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

/** Sends a request that the server answers with the bytes. */
const relay = (answer: string) =>
  sendRaw(
    program.url,
    `GET /${Buffer.from(answer).toString('base64url')} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  );

async function countRequests(): Promise<number> {
  const service = await program.api.ok('GET', '/cloud/service', { token: program.administrator_token });
  return service.limits.find(({ name }: { name: string }) => name === 'gateway_requests').used;
}

const CHUNKS = 'content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
const SHORT = 'content-type: text/plain\r\ncontent-length: 5\r\n\r\nhello';
const CUT = 'content-type: text/plain\r\ncontent-length: 100000\r\n\r\nhello';
const STATUSES = ['000', '042', '099', '101', '600', '999', '1000', 'abc', '-1'];

test.each(STATUSES.flatMap((status) => [CHUNKS, SHORT, CUT].map((rest) => [status, rest])))(
  'gateway: an answer with the status %s is refused as invalid, and its request no longer counts: %j',
  async (status, rest) => {
    const answer = await relay(`HTTP/1.1 ${status} X\r\n${rest}`);
    expect([answer.status, answer.body.code]).toEqual([503, 'GATEWAY_SERVER_UNREACHABLE']);
    await waitFor(async () => (await countRequests()) === 0, 'the request to end');
  },
);

test.each(['200', '204', '304', '418', '599'])('gateway: an answer with the status %s is passed on', async (status) => {
  expect((await relay(`HTTP/1.1 ${status} X\r\n${SHORT}`)).status).toBe(Number(status));
});

test('gateway: answers that break off leave no request that counts, and no text in the log', async () => {
  const before = program.output().length;
  for (const broken of [
    '',
    'HTTP/1.1',
    `HTTP/1.1 200 X\r\n${CUT}`,
    'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz',
  ]) {
    await relay(broken).catch(() => 'cut off');
  }
  await waitFor(async () => (await countRequests()) === 0, 'the requests to end');
  expect(program.output().slice(before)).toBe('');
});
