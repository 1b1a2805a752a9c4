import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant, type Tenant } from '../support/tenant.ts';
import { openSocket, type TestSocket } from '../support/watch/socket.ts';
import { WATCHED_PATHS } from './watch-rows.ts';

/** Queries that paths require. */
const QUERIES: [RegExp, (ids: Record<string, string>) => string][] = [
  [/\/(logs|log-lines)$/, () => 'stream=std_out'],
  [/\/batch\//, ({ identity_id }) => `identity_ids=${identity_id}`],
  [/^\/cloud\/devices\/links$/, ({ device_link_token }) => `device_link_token=${device_link_token}`],
];

/** Queries that some or all paths refuse. */
const BAD_QUERIES = [
  `watch_index=${'1'.repeat(65)}`,
  'watch_index=%00',
  'include_state=perhaps',
  'exclude_outdated=7',
  'before_create_ts=yesterday',
  'stream=std_in',
  'tags_json=[]',
  'tags_json=%7B',
  'include_destroyed=%00',
  'anchor=%00',
  'count=1.5',
  'count=-1',
  'identity_ids=me',
  'device_link_token=none',
];

let opened: TestService;
let ours: Tenant;
let theirs: Tenant;
beforeAll(async () => {
  opened = await openTestService({ MUSTER_SOCKETS_PER_CALLER_MAX: '1000', MUSTER_WATCHERS_PER_CALLER_MAX: '1000' });
  [ours, theirs] = await Promise.all([makeTenant(opened), makeTenant(opened)]);
}, 300_000);
afterAll(() => opened[Symbol.asyncDispose]());

const idsOf = ({ ids, tokens }: Tenant) => ({ ...ids, device_link_token: tokens.device_link ?? '' });
const tokensOf = ({ tokens }: Tenant): [string, string | undefined][] => [
  ['no token', undefined],
  ...Object.entries(tokens),
  ['administrator', opened.administrator_token],
];

/** Returns all paths with these ids; a missing id becomes an unknown one. */
function pathsWith(ids: Record<string, string>): string[] {
  return WATCHED_PATHS.map((template) => {
    const filled = template.replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? crypto.randomUUID());
    const [, queryOf] = QUERIES.find(([pattern]) => pattern.test(template)) ?? [];
    return queryOf ? `${filled}?${queryOf({ identity_id: crypto.randomUUID(), ...ids })}` : filled;
  });
}

/** Returns the outcome of each path's GET: "200", or the code of the error. */
async function outcomesByGet(paths: string[], token: string | undefined): Promise<Map<string, string>> {
  const answers = await Promise.all(paths.map((path) => opened.api.get(path, token)));
  return new Map(
    paths.map((path, index) => [path, answers[index]?.status === 200 ? '200' : answers[index]?.body.code]),
  );
}

/** Returns the outcome of subscribing to each path. */
async function outcomesBySocket(paths: string[], token: string | undefined): Promise<Map<string, string>> {
  using socket = openSocket(opened.config.public_url, token === undefined ? {} : { token });
  // Sequential, so that the socket stays below its limit of frames.
  const outcomes = new Map<string, string>();
  for (const path of paths) outcomes.set(path, await outcomeOf(socket, path));
  return outcomes;
}

async function outcomeOf(socket: TestSocket, path: string): Promise<string> {
  socket.send({ type: 'subscribe', id: path.slice(0, 64), path });
  const frame = await socket.next(({ type }) => type === 'subscribed' || type === 'error');
  if (frame.type === 'error') return frame.error.code;
  // An accepted subscription receives a body or an error.
  const shown = await socket.next(({ type }) => type === 'body' || type === 'error');
  if (shown.type === 'error') return shown.error.code;
  socket.send({ type: 'unsubscribe', id: path.slice(0, 64) });
  await socket.next(({ type }) => type === 'unsubscribed');
  return '200';
}

/** Returns where a subscription and the GET have different outcomes. */
async function differences(paths: string[], token: string | undefined) {
  const [by_get, by_socket] = await Promise.all([outcomesByGet(paths, token), outcomesBySocket(paths, token)]);
  const different = paths.filter((path) => by_get.get(path) !== by_socket.get(path));
  return {
    outcomes: [...by_get.values()],
    different: different.map((path) => `${path}: ${by_get.get(path)} by GET, ${by_socket.get(path)} by socket`),
  };
}

describe('a subscription is refused like its GET, with the same code,', () => {
  const CASES: { what: string; paths: () => string[]; codes: string[] }[] = [
    {
      what: 'for any token, and without one',
      paths: () => pathsWith(idsOf(ours)),
      codes: ['200', 'API_UNAUTHORIZED', 'CLAIMS_MISSING_ENTITLEMENT', 'GROUP_INSUFFICIENT_PERMISSIONS'],
    },
    {
      what: "for another tenant's things",
      paths: () => pathsWith(idsOf(theirs)),
      codes: ['GAME_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND'],
    },
    {
      what: "for another tenant's things below one's own game",
      paths: () => pathsWith({ ...idsOf(theirs), game_id: ours.game.game_id }),
      codes: ['GAME_ENVIRONMENT_NOT_FOUND', 'UPLOAD_NOT_FOUND'],
    },
    {
      what: "for another tenant's things below one's own environment",
      paths: () => {
        const { game_id, namespace_id } = ours.game;
        return pathsWith({ ...idsOf(theirs), game_id, namespace_id, environment_id: namespace_id });
      },
      codes: ['SERVERS_SERVER_NOT_FOUND', 'BUILDS_BUILD_NOT_FOUND', 'MATCHMAKER_LOBBY_NOT_FOUND'],
    },
    { what: 'for missing things', paths: () => pathsWith({}), codes: ['GROUP_NOT_FOUND', 'IDENTITY_NOT_FOUND'] },
    {
      what: 'for invalid ids',
      paths: () => WATCHED_PATHS.filter((path) => path.includes('{')).map((path) => path.replace(/\{\w+\}/g, 'none')),
      codes: ['API_NOT_FOUND', 'GAME_NOT_FOUND'],
    },
  ];
  for (const { what, paths, codes } of CASES) {
    test(what, async () => {
      const refused_paths = paths();
      const found = await Promise.all(tokensOf(ours).map(([, token]) => differences(refused_paths, token)));
      expect(found.flatMap(({ different }) => different)).toEqual([]);
      const outcomes = new Set(found.flatMap((one) => one.outcomes));
      expect(codes.filter((code) => !outcomes.has(code))).toEqual([]);
    }, 300_000);
  }

  test('for invalid queries', async () => {
    const paths = pathsWith(idsOf(ours));
    const tokens = [ours.tokens.public, ours.tokens.cloud, opened.administrator_token];
    const cases = BAD_QUERIES.flatMap((query) => tokens.map((token) => ({ query, token })));
    const found = await Promise.all(
      cases.map(({ query, token }) =>
        differences(
          paths.map((path) => `${path}${path.includes('?') ? '&' : '?'}${query}`),
          token,
        ),
      ),
    );
    expect(found.flatMap(({ different }) => different)).toEqual([]);
    const bad = found.flatMap(({ outcomes }) => outcomes).filter((code) => code === 'API_BAD_QUERY_PARAMETER');
    expect(bad.length).toBeGreaterThan(40);
  }, 300_000);

  test('for an invalid token', async () => {
    const [path = ''] = pathsWith(idsOf(ours));
    for (const token of ['none', `${ours.tokens.public}x`]) {
      const { status, body } = await opened.api.get(path, token);
      const socket = openSocket(opened.config.public_url);
      socket.send({ type: 'authenticate', token });
      const { error } = await socket.next(({ type }) => type === 'error');
      expect([status, error.code]).toEqual([401, body.code]);
      expect((await socket.closed).code).toBe(4401);
    }
  });

  test('for an unknown path; a path that cannot be watched has a code of its own', async () => {
    const paths = ['/nothing', '//', '/cloud/games/', '/cloud//games', '/%', '/cloud/games%2f', '/\\elsewhere/'];
    const { different, outcomes } = await differences(paths, opened.administrator_token);
    expect(different).toEqual([]);
    expect(new Set(outcomes)).toEqual(new Set(['API_NOT_FOUND']));
    using socket = openSocket(opened.config.public_url, { token: opened.administrator_token });
    for (const path of ['/', '/cloud/auth/inspect', '/health/ready', '/openapi.json']) {
      expect(await outcomeOf(socket, path)).toBe('WATCH_NOT_WATCHABLE');
    }
    expect(await outcomeOf(socket, '//elsewhere.example/cloud/games')).toBe('API_NOT_FOUND');
    expect(await outcomeOf(socket, '/cloud/games/create')).toBe('API_NOT_FOUND');
  });
});
