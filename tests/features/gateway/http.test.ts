import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** A server that runs, but does not listen. */
const SILENT_SERVER = "console.log('running'); setInterval(() => {}, 60_000);";

const muster = shareService({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });
let game: TestGame;
let web: Awaited<ReturnType<typeof startWebServer>>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  web = await startWebServer(muster, game);
}, 300_000);

/** Sends a request to the host name of a port. */
function send(
  name: string,
  path: string,
  { headers, ...more }: RequestInit & { headers?: Record<string, string> } = {},
) {
  const host = `${name}.${SERVERS_DOMAIN}`;
  return fetch(`${muster.config.local_url}${path}`, { redirect: 'manual', ...more, headers: { ...headers, host } });
}

async function outcomeOf(answer: Promise<Response>): Promise<string> {
  const { status, headers } = await answer;
  const body = headers.get('content-type')?.includes('json') ? await (await answer).json() : undefined;
  return `${status} ${body?.code}`;
}

describe('gateway: refuses', () => {
  const SOME_ID = '0197a4a6-6f2c-7000-8000-0123456789ab';

  test('names without a server, and malformed names', async () => {
    for (const name of [`${SOME_ID}-web`, SOME_ID, `${SOME_ID}-`, 'www', `x.${SOME_ID}-web`, `${SOME_ID}-web-`]) {
      expect([name, await outcomeOf(send(name, '/'))]).toEqual([name, '404 GATEWAY_NAME_NOT_FOUND']);
    }
  });

  test('a port of the server without http, and labels that the server does not have', async () => {
    const name = `${web.server_id}-game`;
    expect(await (await send(name, '/')).json()).toMatchObject({
      code: 'GATEWAY_NAME_NOT_FOUND',
      message: `No game server has a port for http named "${name}". Ask the matchmaker for the address again.`,
    });
    expect(await outcomeOf(send(`${web.server_id}-other`, '/'))).toBe('404 GATEWAY_NAME_NOT_FOUND');
    expect(await outcomeOf(send(`${web.server_id}-constructor`, '/'))).toBe('404 GATEWAY_NAME_NOT_FOUND');
  });

  test('with a page for a browser', async () => {
    const answer = await send(`${SOME_ID}-web`, '/', { headers: { accept: 'text/html,*/*' } });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await answer.text()).toContain(`No game server has a port for http named &quot;${SOME_ID}-web&quot;.`);
  });

  test('a server that has ended, and says how it ended', async () => {
    const ending = await startWebServer(muster, game);
    await send(ending.name, '/exit').catch(() => {});
    await waitForEndEvent(muster, ending.server_id);
    const answer = await waitFor(async () => {
      const refused = await send(ending.name, '/headers');
      return refused.status === 400 && refused;
    }, 'the gateway to notice the end');
    expect(await answer.json()).toMatchObject({
      code: 'GATEWAY_SERVER_ENDED',
      message: `The game server ${ending.server_id} is gone: it ended with exit code 3. Ask the matchmaker for another lobby.`,
    });
  }, 300_000);

  test('a server that does not listen, and one that refuses a WebSocket, by their names', async () => {
    const silent = await startWebServer(muster, game, { build: await uploadScript(muster.api, game, SILENT_SERVER) });
    expect(await (await send(silent.name, '/headers')).json()).toMatchObject({
      code: 'GATEWAY_SERVER_UNREACHABLE',
      message: `The game server ${silent.server_id} runs, but refused the connection, closed it without an answer, or sent an answer that is not valid HTTP. It may be starting: try again.`,
    });
    const handshake = { 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    const headers = { ...handshake, connection: 'upgrade', upgrade: 'websocket' };
    expect(await (await send(web.name, '/no-socket', { headers })).json()).toMatchObject({
      code: 'GATEWAY_SOCKET_REFUSED',
      message: expect.stringContaining(`The game server ${web.server_id} did not accept the WebSocket.`),
    });
  }, 300_000);

  test('ambiguous requests: two hosts, two lengths', async () => {
    const host = `${web.name}.${SERVERS_DOMAIN}`;
    const raw = (...lines: string[]) => sendRaw(muster.config.local_url, `${lines.join('\r\n')}\r\n\r\n`);
    const two_hosts = await raw('GET / HTTP/1.1', `Host: ${host}`, 'Host: other.example.com', 'Connection: close');
    expect(two_hosts.status).toBe(400);
    const two_lengths = await raw(
      'POST /echo HTTP/1.1',
      `Host: ${host}`,
      'Content-Length: 1',
      'Transfer-Encoding: chunked',
    );
    expect(two_lengths.status).toBe(400);
  });
});

describe('gateway: a request by host name', () => {
  /** Some servers read those with `_` or `.` like those with `-`. */
  const IMITATIONS = [
    'muster_player_id',
    'x_forwarded_for',
    'x.forwarded_proto',
    'transfer_encoding',
    'content_length',
  ];
  const REMOVED = ['x-hop', 'x-real-ip', 'muster-proxy-secret', ...IMITATIONS];

  test('reaches the server with its path, query and headers; headers about the client are replaced', async () => {
    const claims = {
      'x-forwarded-for': '192.0.2.7',
      forwarded: 'for=192.0.2.7',
      'x-real-ip': '192.0.2.7',
      'x-forwarded-host': 'evil.example.com',
      connection: 'x-hop',
      'x-hop': '1',
      'muster-proxy-secret': 'a secret',
      muster_player_id: 'another player',
      x_forwarded_for: '192.0.2.7',
      'x.forwarded_proto': 'https',
      transfer_encoding: 'chunked',
      content_length: '7',
      own_header: 'kept',
      cookie: 'session=1',
      authorization: 'Bearer of the game',
      'x-own': 'kept',
    };
    const answer = await send(web.name, '/headers?a=%2F&b', { headers: claims });
    const { headers, path } = (await answer.json()) as { headers: Record<string, string>; path: string };
    const host = `${web.name}.${SERVERS_DOMAIN}`;
    const asked_host = `${host}`;
    expect(path).toBe('/headers?a=%2F&b');
    expect(headers).toMatchObject({
      host: asked_host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': asked_host,
      'x-forwarded-proto': 'http',
      forwarded: `for=127.0.0.1;host="${asked_host}";proto=http`,
      cookie: 'session=1',
      authorization: 'Bearer of the game',
      'x-own': 'kept',
      own_header: 'kept',
    });
    for (const name of REMOVED) expect([name, headers[name]]).toEqual([name, undefined]);
    expect(answer.headers.get('rvt-ray-id')).toBeString();
  });

  test('passes on bodies of any size in both directions, for any method', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await send(web.name, '/echo', { method, body: 'to the server' });
      expect([answer.headers.get('x-method'), await answer.text()]).toEqual([method, 'to the server']);
    }
    const large = new Uint8Array(8 * 1024 ** 2).fill(7);
    const answer = await send(web.name, '/echo', { method: 'POST', body: large });
    expect(Bun.hash(await answer.arrayBuffer())).toBe(Bun.hash(large));
  });

  test('leaves the connection open for the next request after a body that the server has read', async () => {
    const host = `${web.name}.${SERVERS_DOMAIN}`;
    const post = (body: string) =>
      `POST /echo HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const { hostname, port } = new URL(muster.config.local_url);
    let text = '';
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data(_, bytes) {
          text += bytes.toString();
        },
      },
    });
    socket.write(post('the first'));
    await waitFor(() => text.includes('the first'), 'the first answer');
    socket.write(post('the second'));
    await waitFor(() => text.includes('the second'), 'the second answer');
    expect(text.toLowerCase()).not.toContain('connection: close');
    socket.end();
  });

  test('gets an early answer, although the client still sends', async () => {
    const large = new Uint8Array(32 * 1024 ** 2);
    const answer = await send(web.name, '/refuse', { method: 'POST', body: large });
    expect(answer.status).toBe(413);
  });

  test('whose body is answered early ends the connection, because the rest of the body would be read as a request', async () => {
    const head = `POST /refuse HTTP/1.1\r\nHost: ${web.name}.${SERVERS_DOMAIN}\r\nContent-Length: 100000\r\n\r\n`;
    const answer = await sendRaw(muster.config.local_url, `${head}${'x'.repeat(1_000)}`);
    expect([answer.status, answer.headers.get('connection')]).toEqual([413, 'close']);
  });

  test('with HEAD gets the length of the file', async () => {
    const [got, asked] = [await send(web.name, '/file'), await send(web.name, '/file', { method: 'HEAD' })];
    expect([got.headers.get('content-length'), await got.text()]).toEqual(['11', 'a game file']);
    expect([asked.headers.get('content-length'), await asked.text()]).toEqual(['11', '']);
  });

  test('gets status, cookies, redirects and encodings as the server sent them', async () => {
    const redirected = await send(web.name, '/cookies');
    expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/there']);
    expect(redirected.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(redirected.headers.has('x-hop')).toBe(false);
    expect((await send(web.name, '/nowhere')).status).toBe(418);
    const packed = await sendRaw(
      muster.config.local_url,
      `GET /gzip HTTP/1.1\r\nHost: ${web.name}.${SERVERS_DOMAIN}\r\nConnection: close\r\n\r\n`,
    );
    expect(packed.headers.get('content-encoding')).toBe('gzip');
  });

  test('gets an answer while it is written', async () => {
    const answer = await send(web.name, '/chunks');
    const chunks: string[] = [];
    for await (const chunk of answer.body ?? []) chunks.push(Buffer.from(chunk).toString());
    expect(chunks.join('')).toBe('one two three');
    expect(chunks.length).toBeGreaterThan(1);
  });
});

test('gateway: the request to the server ends when its client disconnects', async () => {
  const leaving = new AbortController();
  const hanging = send(web.name, '/hang', { signal: leaving.signal }).catch((error: Error) => error.name);
  await web.lines(2);
  leaving.abort();
  expect(await hanging).toBe('AbortError');
  expect(await web.lines(3)).toEqual(['listening', 'asked', 'left']);
});

test('gateway: by host name, no header of a server acts on hosts beside its own', async () => {
  const { headers } = await send(web.name, '/origin-headers');
  expect(headers.get('strict-transport-security')).toBe('max-age=9');
  for (const name of ['clear-site-data', 'x-accel-redirect', 'x-sendfile']) expect(headers.get(name)).toBeNull();
  expect(headers.getSetCookie()).toEqual(['a=1; Path=/; Secure', 'b=domain=2']);
});

describe('gateway: a request by path', () => {
  const ORIGIN_HEADERS = [
    'alt-svc',
    'clear-site-data',
    'nel',
    'origin-trial',
    'report-to',
    'reporting-endpoints',
    'sec-session-registration',
    'secure-session-registration',
    'service-worker-allowed',
    'set-cookie',
    'set-login',
    'speculation-rules',
    'strict-transport-security',
    'use-as-dictionary',
    'www-authenticate',
    'x-accel-redirect',
    'x-sendfile',
  ];
  const sendByPath = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${muster.config.local_url}/gateway/${web.name}${path}`, { headers, redirect: 'manual' });

  test('reaches the server, without credentials and cookies of the origin of the API', async () => {
    const credentials = { cookie: 'session=1', authorization: `Bearer ${game.cloud_token}` };
    const answer = await sendByPath('/headers?x=1', credentials);
    const { headers, path } = (await answer.json()) as { headers: object; path: string };
    expect(path).toBe('/headers?x=1');
    expect(headers).not.toHaveProperty('cookie');
    expect(headers).not.toHaveProperty('authorization');
    expect(answer.headers.get('content-security-policy')).toStartWith('sandbox ');
    expect((await sendByPath('/cookies')).headers.getSetCookie()).toEqual([]);
    expect((await sendByPath('')).status).toBe(418);
  });

  test('gets no headers that would act on the whole origin of the API', async () => {
    const { headers } = await sendByPath('/origin-headers');
    expect([...headers.keys()]).toContain('x-own');
    for (const name of ORIGIN_HEADERS) expect([name, headers.get(name)]).toEqual([name, null]);
  });

  test('is refused for a name without a server', async () => {
    const url = `${muster.config.local_url}/gateway/no-name/`;
    expect(await outcomeOf(fetch(url))).toBe('404 GATEWAY_NAME_NOT_FOUND');
  });
});

test('gateway: the API and its other paths are not affected', async () => {
  expect((await muster.api.get('/health/live')).status).toBe(200);
  expect((await muster.api.get('/gateway')).status).toBe(404);
});
