import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';

let opened: TestService;
let game: TestGame;
let namespace: string;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
  namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
});
afterAll(() => opened[Symbol.asyncDispose]());

const HASH = await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 });
const call = (method: string, path: string, body?: unknown) =>
  opened.api.call(method, `${namespace}${path}`, { token: game.cloud_token, body });
const readConfig = async () => (await opened.api.ok('GET', namespace, { token: game.cloud_token })).namespace.config;
const code = async (answer: Promise<{ status: number; body: { code: string } }>) => {
  const { status, body } = await answer;
  return `${status} ${body.code}`;
};

/** The error names the one number, which is for five kinds of client. */
function playersProblem(problem: string): string[] {
  const kinds = ['client', 'vpn', 'proxy', 'tor', 'hosting'];
  return [`max-players.${problem}`, ...kinds.map((kind) => `max-players.${kind}.${problem}`)];
}

describe("the matchmaker's limits", () => {
  const CASES: [object, string[]][] = [
    [{ lobby_count_max: 0, max_players: 1 }, ['lobby-count.too-low']],
    [{ lobby_count_max: 32_768, max_players: 1 }, ['lobby-count.too-high']],
    [{ lobby_count_max: 32_767, max_players: 1 }, []],
    [{ lobby_count_max: 1, max_players: 0 }, playersProblem('too-low')],
    [{ lobby_count_max: 1, max_players: 2_147_483_647 }, []],
    [{ lobby_count_max: 1, max_players: 2_147_483_648 }, playersProblem('too-high')],
    [{ lobby_count_max: 1, max_players: 4_294_967_295 }, playersProblem('too-high')],
  ];
  for (const [body, problems] of CASES) {
    test(`${JSON.stringify(body)}: ${problems.join(', ') || 'valid'}`, async () => {
      const before = await readConfig();
      const { errors } = (await call('POST', '/mm-config/validate', body)).body;
      expect(errors.map(({ path }: { path: string[] }) => path.join('.'))).toEqual(problems);
      expect((await readConfig()).matchmaker).toEqual(before.matchmaker);
      const answer = await call('POST', '/mm-config', body);
      expect(answer.status).toBe(problems.length > 0 ? 400 : 200);
      if (problems.length > 0) expect(answer.body.code).toBe('VALIDATION_ERROR');
    });
  }

  test('below zero, above 32 bits and of other types are refused by their shape', async () => {
    for (const lobby_count_max of [-1, 4_294_967_296, 1.5, '1', null]) {
      expect(await code(call('POST', '/mm-config', { lobby_count_max, max_players: 1 }))).toBe('400 API_BAD_BODY');
    }
  });

  test('a number of players that is not new leaves the other kinds of client as they are', async () => {
    const token = opened.administrator_token;
    const body = { display_name: 'Of default limits', developer_group_id: game.group_id };
    const { game_id } = await opened.api.ok('POST', '/cloud/games', { token, body });
    const { game: made } = await opened.api.ok('GET', `/cloud/games/${game_id}`, { token });
    const path = `/cloud/games/${game_id}/namespaces/${made.namespaces[0].namespace_id}`;
    const readLimits = async () => (await opened.api.ok('GET', path, { token })).namespace.config.matchmaker;
    const before = await readLimits();
    const limits = { lobby_count_max: 9, max_players: before.max_players_per_client };
    await opened.api.ok('POST', `${path}/mm-config`, { token, body: limits });
    expect(await readLimits()).toEqual({ ...before, lobby_count_max: 9 });
  });

  test('a new number of players is that of all kinds of client', async () => {
    await call('POST', '/mm-config', { lobby_count_max: 7, max_players: 3 });
    expect((await readConfig()).matchmaker).toEqual({
      lobby_count_max: 7,
      max_players_per_client: 3,
      max_players_per_client_vpn: 3,
      max_players_per_client_proxy: 3,
      max_players_per_client_tor: 3,
      max_players_per_client_hosting: 3,
    });
  });
});

describe('users of a site', () => {
  const BAD_PASSWORDS = [
    'secret',
    '',
    HASH.slice(0, -1),
    `${HASH}x`,
    HASH.replace('$04$', '$13$'),
    HASH.replace('$04$', '$03$'),
    `$argon2id$v=19$${'a'.repeat(53)}`,
    `${HASH}\n`,
    // Hashes that no password can be compared with.
    HASH.replace(/^\$2b\$/, '$2$$'),
    `${HASH.slice(0, 28)}/${HASH.slice(29)}`,
    `${HASH.slice(0, -1)}/`,
  ];
  for (const password of BAD_PASSWORDS) {
    test(`a password must be a bcrypt hash: ${JSON.stringify(password.slice(0, 20))}`, async () => {
      const answer = call('POST', '/auth-user', { user: 'ann', password });
      expect(await code(answer)).toBe('400 CDN_INVALID_AUTH_USER_PASSWORD');
      expect((await readConfig()).cdn.auth_user_list).toEqual([]);
    });
  }

  test('must have a name that Basic authentication can carry', async () => {
    for (const user of ['', 'a:b', 'a\nb', 'x'.repeat(129)]) {
      expect(await code(call('POST', '/auth-user', { user, password: HASH }))).toBe('400 VALIDATION_ERROR');
    }
  });

  test('are at most 32, also with concurrent additions; existing ones can be changed and removed', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `user ${String(index).padStart(2, '0')}`);
    const answers = await Promise.all(names.map((user) => call('POST', '/auth-user', { user, password: HASH })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(32);
    expect(answers.filter(({ body }) => body.code === 'CDN_TOO_MANY_AUTH_USERS')).toHaveLength(8);
    const [first] = (await readConfig()).cdn.auth_user_list;
    expect((await call('POST', '/auth-user', { ...first, password: HASH })).status).toBe(200);
    for (const { user } of (await readConfig()).cdn.auth_user_list) {
      expect((await call('DELETE', `/auth-user/${encodeURIComponent(user)}`)).status).toBe(200);
    }
    expect((await readConfig()).cdn.auth_user_list).toEqual([]);
  });
});

describe('domains of a site', () => {
  const BAD_DOMAINS = ['', 'localhost', '127.0.0.1', 'a..b.example', '-a.example', 'http://a.example', 'a.example:80'];
  for (const domain of [...BAD_DOMAINS, `${'a'.repeat(64)}.example`, 'x.sites.localhost', 'ä.example', 'a.example/']) {
    test(`${JSON.stringify(domain)} is invalid`, async () => {
      expect(await code(call('POST', '/domains', { domain }))).toBe('400 CDN_INVALID_DOMAIN');
    });
  }

  test('belong to one namespace, which has at most ten, also concurrently', async () => {
    const other = await makeGame(opened.api, opened.administrator_token);
    const theirs = `/cloud/games/${other.game_id}/namespaces/${other.namespace_id}/domains`;
    const add = (domain: string) => opened.api.post(theirs, other.cloud_token, { domain });
    expect((await call('POST', '/domains', { domain: 'Play.Example.com' })).status).toBe(200);
    expect((await call('POST', '/domains', { domain: 'play.example.com' })).status).toBe(200);
    expect(await code(add('play.example.com'))).toBe('400 CLOUD_HOSTNAME_TAKEN');

    const answers = await Promise.all(Array.from({ length: 14 }, (_, index) => add(`a${index}.example.com`)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(answers.filter(({ body }) => body.code === 'CDN_TOO_MANY_DOMAINS')).toHaveLength(4);

    const [domain] = (await readConfig()).cdn.domains;
    expect(domain).toEqual({
      domain: 'play.example.com',
      create_ts: expect.stringMatching(/^\d{4}-.*Z$/),
      verification_status: 'active',
      verification_method: { http: { cname_record: 'sites.localhost' } },
      verification_errors: [],
    });
    // The domain of another namespace stays.
    await opened.api.call('DELETE', `${theirs}/play.example.com`, { token: other.cloud_token });
    expect((await readConfig()).cdn.domains).toHaveLength(1);
    expect((await call('DELETE', '/domains/PLAY.example.com')).status).toBe(200);
    expect((await readConfig()).cdn.domains).toEqual([]);
  });

  test('that a namespace does not have are removed without a trace in the database', async () => {
    const domain = `${crypto.randomUUID()}.example.com`;
    expect((await call('DELETE', `/domains/${domain}`)).status).toBe(200);
    await using database = openDatabase(opened.database_address, 1);
    const rows = await database.queries.execute(sql`select from topics where topic = ${`site-host:${domain}`}`);
    expect(rows).toHaveLength(0);
  });
});

test('site settings: whether it requires a password, and whether its pages need a token', async () => {
  expect(await readConfig()).toMatchObject({ cdn: { auth_type: 'none', enable_domain_public_auth: true } });
  await call('PUT', '/cdn-auth', { auth_type: 'basic' });
  await call('PUT', '/domain-public-auth', { enabled: false });
  expect(await readConfig()).toMatchObject({ cdn: { auth_type: 'basic', enable_domain_public_auth: false } });
  expect(await code(call('PUT', '/cdn-auth', { auth_type: 'digest' }))).toBe('400 API_BAD_BODY');
});

test('ports of a development token have two forms, which cannot be mixed', async () => {
  const lobby_ports = [{ label: 'game', target_port: 7_777, proxy_protocol: 'udp' }];
  const ports = { game: { protocol: 'udp', port: 7_777 } };
  const path = '/tokens/development';
  expect((await call('POST', path, { hostname: 'localhost', lobby_ports })).body.token).toStartWith('dev_prod.');
  for (const of_both of [path, `${path}/validate`]) {
    const mixed = call('POST', of_both, { hostname: 'localhost', lobby_ports, ports });
    expect(await code(mixed)).toBe('400 CLOUD_INVALID_CONFIG');
  }
  for (const form of [{}, { ports }, { lobby_ports }]) {
    const answer = await call('POST', `${path}/validate`, { hostname: 'localhost', ...form });
    expect(answer.body).toEqual({ errors: [] });
  }
  const invalid = { hostname: 'localhost', ports: { game: { protocol: 'udp' } } };
  expect((await call('POST', `${path}/validate`, invalid)).body.errors).toEqual([
    { path: ['ports', '0', 'missing-port-and-port-range'] },
  ]);
  const twice = await call('POST', `${path}/validate`, {
    hostname: 'h',
    lobby_ports: [...lobby_ports, ...lobby_ports],
  });
  expect(twice.body.errors).toEqual([{ path: ['ports', '1', 'port-protocol-not-unique'] }]);
});
