import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { CallerKind } from '../../src/platform/tokens/caller.ts';
import type { Tokens } from '../../src/platform/tokens/tokens.ts';
import type { Answer } from '../support/api.ts';
import { CALLER_KINDS, makeCaller } from '../support/callers.ts';
import { makeGame } from '../support/game.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { fillPath, listOperations, type Operation } from '../support/operations.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { openServiceTokens } from '../support/service-tokens.ts';

const PRINTABLE = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });

/** Before you add an operation here, think about what an unauthenticated caller could do with it. */
const OPEN_TO_ANYONE = [
  'DELETE /hub/session',
  'GET /cloud/bootstrap',
  'GET /cloud/devices/links',
  'GET /cloud/region-tiers',
  'GET /health/live',
  'GET /health/ready',
  'POST /auth/tokens/identity',
  'POST /cloud/devices/links',
  'POST /hub/session',
  'POST /hub/session/token',
  'PUT /uploads/{upload_id}',
];

let muster: TestService;
let tokens: Tokens;
let operations: Operation[];
beforeAll(async () => {
  muster = await openTestService();
  tokens = await openServiceTokens(muster);
  operations = await listOperations(muster.api);
});
afterAll(() => muster[Symbol.asyncDispose]());

async function makeShare(): Promise<string> {
  const { game_id, namespace_id, cloud_token } = await makeGame(muster.api, muster.administrator_token);
  const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/shares`;
  return (await muster.api.ok('POST', path, { token: cloud_token, body: {} })).token;
}

const nameOf = ({ method, path }: Operation): string => `${method} ${path}`;

const withToken = (): (Operation & { kinds: CallerKind[] })[] =>
  operations.flatMap(({ kinds, ...operation }) => (kinds === undefined ? [] : [{ ...operation, kinds }]));

/** Calls the operations in turn and returns those whose answer is not `wanted`. */
async function findOther(
  wanted: string,
  calls: { operation: Operation; headers: Record<string, string>; method?: string }[],
): Promise<string[]> {
  const others: string[] = [];
  for (const { operation, headers, method = operation.method } of calls) {
    const answer = await muster.api.call(method, fillPath(operation), { headers });
    if (describeAnswer(answer) !== wanted) others.push(`${nameOf(operation)}: ${describeAnswer(answer)}`);
  }
  return others;
}

const describeAnswer = ({ status, body }: Answer): string => `${status} ${body.code ?? ''}: ${body.message ?? ''}`;

test('routes: exactly these operations need no token', () => {
  expect(operations.length).toBeGreaterThan(100);
  expect(
    operations
      .filter(({ kinds }) => kinds === undefined)
      .map(nameOf)
      .toSorted(),
  ).toEqual(OPEN_TO_ANYONE);
});

describe('every other operation refuses', () => {
  const NO_TOKEN = '401 API_UNAUTHORIZED: The request has no token. Send the header "Authorization: Bearer <token>".';
  const INVALID = '401 TOKEN_INVALID: The token is malformed or was not signed by this service. Get a new one.';
  const EXPIRED = '401 CLAIMS_ENTITLEMENT_EXPIRED: The token has expired. Get a new one.';

  test('without a token', async () => {
    const calls = withToken().map((operation) => ({ operation, headers: {} }));
    expect(await findOther(NO_TOKEN, calls)).toEqual([]);
  });

  test('HEAD without a token', async () => {
    for (const operation of withToken().filter(({ method }) => method === 'GET')) {
      expect((await muster.api.call('HEAD', fillPath(operation))).status).toBe(401);
    }
  });

  test('a token in the wrong header', async () => {
    const token = muster.administrator_token;
    const ways: Record<string, string>[] = [
      { authorization: token },
      { authorization: `bearer ${token}` },
      { authorization: `Basic ${btoa(`x:${token}`)}` },
      { authorization: 'Bearer' },
      { authorization: 'Bearer ' },
      { 'x-api-key': token },
      { cookie: `token=${token}; rivet_user_refresh_token=${token}` },
    ];
    const [operation] = withToken().filter(({ path }) => path === '/cloud/games');
    if (!operation) throw new Error('there is no operation GET /cloud/games');
    expect(
      await findOther(
        NO_TOKEN,
        ways.map((headers) => ({ operation, headers })),
      ),
    ).toEqual([]);
    expect((await muster.api.get(`/cloud/games?token=${token}&access_token=${token}`)).status).toBe(401);
  });

  test('a malformed token', async () => {
    const headers = { authorization: 'Bearer usr.none.at.all' };
    expect(
      await findOther(
        INVALID,
        withToken().map((operation) => ({ operation, headers })),
      ),
    ).toEqual([]);
  });

  test('an expired token', async () => {
    const expired = new Map<CallerKind, string>();
    for (const kind of CALLER_KINDS)
      expired.set(kind, await tokens.issue(makeCaller(kind), { lifetime_ms: -3_600_000 }));
    const calls = withToken().flatMap((operation) =>
      operation.kinds.map((kind) => ({ operation, headers: { authorization: `Bearer ${expired.get(kind)}` } })),
    );
    expect(await findOther(EXPIRED, calls)).toEqual([]);
  });

  test.each(CALLER_KINDS)('a token of the kind %s, unless the route allows it', async (kind) => {
    // The token of an unknown share link is refused as revoked.
    const token = kind === 'share' ? await makeShare() : await tokens.issue(makeCaller(kind));
    const headers = { authorization: `Bearer ${token}` };
    const strangers = withToken().filter(({ kinds }) => !kinds.includes(kind));
    expect(strangers.length).toBeGreaterThan(20);
    for (const operation of strangers) {
      const is_of_environment = kind === 'service' && operation.path.includes('environment_id');
      const kinds = operation.kinds.join(', ');
      const wanted = is_of_environment
        ? `403 API_FORBIDDEN: This request is not allowed: it does not accept a service token; use one of: ${kinds}.`
        : `401 CLAIMS_MISSING_ENTITLEMENT: This route does not accept tokens of this kind. Use one of: ${kinds}.`;
      expect(await findOther(wanted, [{ operation, headers }])).toEqual([]);
    }
  });
});

test('routes: a valid token of an unknown caller gives no access and causes no failure', async () => {
  const answers: { name: string; status: number; is_named: boolean }[] = [];
  for (const operation of withToken()) {
    for (const kind of operation.kinds) {
      const token = await tokens.issue(makeCaller(kind));
      const { status } = await muster.api.call(operation.method, fillPath(operation), { token });
      // A development token gets invented answers, and an unknown ray has no times.
      const is_named =
        operation.names.length > 0 && kind !== 'development' && !operation.path.startsWith('/cloud/rays/');
      answers.push({ name: `${nameOf(operation)} as ${kind}: ${status}`, status, is_named });
    }
  }
  expect(answers.filter(({ status }) => status >= 500)).toEqual([]);
  const named = answers.filter(({ is_named }) => is_named);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ status }) => ![400, 403, 404].includes(status))).toEqual([]);
});

test('routes: no Authorization header makes the service fail', async () => {
  const header = fc.oneof(
    PRINTABLE,
    PRINTABLE.map((token) => `Bearer ${token}`),
    fc.array(fc.base64String(), { minLength: 3, maxLength: 4 }).map((parts) => `Bearer ${parts.join('.')}`),
  );
  await fc.assert(
    fc.asyncProperty(header, async (authorization) => {
      const { status, body } = await muster.api.call('GET', '/cloud/games', { headers: { authorization } });
      expect(status).toBe(401);
      expect(['API_UNAUTHORIZED', 'TOKEN_INVALID']).toContain(body.code);
    }),
    { numRuns: 200 },
  );
});

test('routes: no Origin makes the service fail, or gives access to a namespace without a token', async () => {
  const origin = fc.oneof(
    fc.webUrl(),
    fc.webAuthority(),
    fc.domain(),
    fc.constantFrom('null', '*', '://', 'https://'),
    PRINTABLE,
  );
  await fc.assert(
    fc.asyncProperty(origin, async (name) => {
      const { status, body } = await muster.api.call('GET', '/matchmaker/regions', { headers: { origin: name } });
      expect([status, body.code]).toEqual([401, 'API_UNAUTHORIZED']);
    }),
    { numRuns: 200 },
  );
});

test('routes: no Host makes the service fail, whether it is its own, of a site, or invalid', async () => {
  const label = fc.oneof(
    fc.domain(),
    fc.constantFrom('game--prod', 'sites.localhost', '..', '-', '[', ']', ':', '@', '%', '::1'),
  );
  const host = fc.oneof(
    fc.array(label, { maxLength: 4 }).map((labels) => labels.join('.')),
    PRINTABLE,
    fc.ipV6(),
    fc.webAuthority(),
  );
  await fc.assert(
    fc.asyncProperty(host, fc.constantFrom('/cloud/games', '/nothing', '/health/live'), async (name, path) => {
      const request = `GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`;
      const { status } = await sendRaw(muster.api.base_url, request);
      expect(status).toBeLessThan(500);
    }),
    {
      numRuns: 300,
      examples: [
        ['[::1', '/nothing'],
        ['a b', '/nothing'],
        ['x:99999', '/nothing'],
        ['%zz', '/nothing'],
      ],
    },
  );
});

test('CORS: pages of other origins may call what games need, and nothing else', async () => {
  const headers = { origin: 'https://evil.example' };
  for (const operation of operations) {
    const { status, headers: answered } = await muster.api.call('OPTIONS', fillPath(operation), { headers });
    const is_open = /^\/(matchmaker|v1|identity|group|portal|media|uploads|health)\//.test(operation.path);
    expect([nameOf(operation), status]).toEqual([nameOf(operation), is_open ? 204 : 403]);
    expect(answered.get('access-control-allow-origin')).toBe(is_open ? 'https://evil.example' : null);
  }
});
