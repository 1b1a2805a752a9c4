import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { createAuditLog } from '../../../src/features/audit/audit.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { RequestedChange } from '../../../src/platform/http/audit.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { listOperations } from '../../support/operations.ts';
import { makeGuest, makeMember, type Person } from '../../support/people.ts';
import { serversOf } from '../../support/servers.ts';
import { uploadSite } from '../../support/site.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

const muster = shareService();
let game: TestGame;
let other: TestGame;
let member: Person;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
  member = await makeMember(muster, game);
}, 300_000);

interface Entry {
  entry_id: string;
  create_ts: string;
  operation: string;
  caller: { kind: string; identity_id?: string; display_name?: string; token_issued_ts?: string };
  address: string;
  user_agent?: string;
  game_id?: string;
  namespace_id?: string;
  group_id?: string;
  details: Record<string, string | number | boolean>;
  outcome: string;
  code?: string;
}

const logOf = ({ game_id }: TestGame) => `/cloud/games/${game_id}/audit-log`;

async function read(path: string, token: string = muster.administrator_token): Promise<Entry[]> {
  return (await muster.api.ok('GET', path, { token })).entries;
}

const newest = async (path: string, token?: string): Promise<Entry | undefined> => (await read(path, token))[0];

describe('audit log: refuses', () => {
  test('to list the changes of a game of another tenant, as if it did not exist', async () => {
    for (const token of [other.cloud_token, (await makeGuest(muster.api, game)).token]) {
      expect(outcomeOf(await muster.api.get(logOf(game), token))).toBe('404 GAME_NOT_FOUND');
    }
    expect(outcomeOf(await muster.api.get(logOf(game), game.service_token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
  });

  test('to list the changes of a group to all but its members', async () => {
    const path = `/group/groups/${game.group_id}/audit-log`;
    const { token } = await makeGuest(muster.api, game);
    expect(outcomeOf(await muster.api.get(path, token))).toBe('403 GROUP_NOT_MEMBER');
    expect(outcomeOf(await muster.api.get(path, member.token))).toBe('200');
    const unknown = `/group/groups/${crypto.randomUUID()}/audit-log`;
    expect(outcomeOf(await muster.api.get(unknown, member.token))).toBe('404 GROUP_NOT_FOUND');
  });

  test('to list all changes to all but administrators', async () => {
    expect(outcomeOf(await muster.api.get('/cloud/audit-log', member.token))).toBe('403 IDENTITY_NOT_ADMIN');
    expect(outcomeOf(await muster.api.get('/cloud/audit-log', muster.administrator_token))).toBe('200');
  });

  test('a page before something that is no entry', async () => {
    expect(outcomeOf(await muster.api.get(`${logOf(game)}?before=x`, game.cloud_token))).toBe(
      '400 API_BAD_QUERY_PARAMETER',
    );
  });
});

describe('audit log: an entry says', () => {
  test('who changed what, when, and from where', async () => {
    const { game_id, namespace_id } = game;
    const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/domain-public-auth`;
    const headers = { 'user-agent': 'a-browser/1' };
    const { headers: answered } = await muster.api.call('PUT', path, {
      token: member.token,
      headers,
      body: { enabled: true },
    });
    expect(await newest(logOf(game), member.token)).toEqual({
      entry_id: answered.get('rvt-ray-id') ?? '',
      create_ts: expect.any(String),
      operation: 'setDomainPublicAuth',
      caller: { kind: 'identity', identity_id: member.identity_id, display_name: expect.stringMatching(/^Guest/) },
      address: '127.0.0.1',
      user_agent: 'a-browser/1',
      game_id,
      namespace_id,
      details: { enabled: true },
      outcome: 'done',
    });
    await muster.api.ok('PUT', path, { token: game.cloud_token, body: { enabled: false } });
    const entry = await newest(logOf(game), game.cloud_token);
    expect(entry?.caller).toEqual({ kind: 'cloud', token_issued_ts: expect.any(String) });
    expect(entry?.details.enabled).toBe(false);
  });

  test('what was made: a game with its first entries, a build, a site, an upload, a server', async () => {
    const made = await makeGame(muster.api, muster.administrator_token);
    const build_id = await uploadScript(muster.api, made, 'setInterval(() => {}, 1000);');
    const site_id = await uploadSite(muster.api, made, { 'index.html': 'hello' });
    const entries = await read(logOf(made), made.cloud_token);
    expect(entries.toReversed().map(({ operation }) => operation)).toEqual([
      'createGame',
      'setMatchmakerLimits',
      'setMatchmakerLimits',
      'createCloudToken',
      'createPublicToken',
      'createServiceToken',
      'prepareBuild',
      'completeBuild',
      'createSite',
      'completeUpload',
    ]);
    expect(entries.every(({ game_id, outcome }) => game_id === made.game_id && outcome === 'done')).toBe(true);
    expect(entries.at(-1)?.details).toMatchObject({ display_name: 'Test game', developer_group_id: made.group_id });
    expect(entries.at(-7)?.details).toMatchObject({ build: build_id, name: 'Test build' });
    expect(entries.at(-7)?.namespace_id).toBe(made.namespace_id);
    expect(entries[1]?.details).toMatchObject({ site_id, display_name: expect.any(String) });
    expect((await read(`/group/groups/${made.group_id}/audit-log`)).map(({ operation }) => operation)).toEqual([
      'createGame',
      'createGroup',
    ]);
  });

  test('which token of tools or of a back end made a change: the one that an earlier entry has issued', async () => {
    const { api, administrator_token: owner } = muster;
    const issued = await makeGame(api, owner);
    const { game_id } = issued;
    const { device_link_token } = await api.ok('POST', '/cloud/devices/links');
    const body = { device_link_token, game_id };
    await api.ok('POST', '/cloud/devices/links/complete', { token: owner, body });
    const { cloud_token } = await api.ok('GET', `/cloud/devices/links?device_link_token=${device_link_token}`);
    const tokens = [issued.cloud_token, issued.service_token, cloud_token];
    const servers = serversOf(muster, issued);
    const created = await servers.bodyOf(await uploadScript(api, issued, 'setInterval(() => {}, 1000);'));
    for (const token of tokens) await api.ok('POST', servers.path, { token, body: created });
    const entries = (await read(logOf(issued))).toReversed();
    const issues = ['createCloudToken', 'createServiceToken', 'completeDeviceLink'].map((name) =>
      entries.find(({ operation }) => operation === name),
    );
    const uses = entries.filter(({ operation }) => operation === 'createServer');
    expect(uses.map(({ caller }) => caller.token_issued_ts)).toEqual(
      issues.map((entry) => String(entry?.details.token_issued_ts)),
    );
  });

  test('who closed or ended a lobby by hand, in its namespace', async () => {
    const played = await makeControlledGame(muster);
    const { lobby_id } = await seatOf(find(muster, played));
    const lobby = `/cloud/games/${played.game_id}/matchmaker/lobbies/${lobby_id}`;
    await muster.api.ok('PUT', `${lobby}/closed`, { token: played.cloud_token, body: { is_closed: true } });
    await muster.api.ok('DELETE', lobby, { token: played.cloud_token });
    const [ended, closed, ...earlier] = await read(`${logOf(played)}?namespace_id=${played.namespace_id}`);
    const { namespace_id } = played;
    expect(closed).toMatchObject({
      operation: 'setLobbyClosedByDeveloper',
      namespace_id,
      details: { lobby_id, is_closed: true },
    });
    expect(ended).toMatchObject({ operation: 'deleteLobby', namespace_id, details: { lobby_id, did_remove: true } });
    // Calls of players and game servers are no changes by a person.
    expect(earlier.map(({ operation }) => operation).filter((name) => /lobb|player/i.test(name))).toEqual([]);
  });

  test('who joined and left a group, to its members', async () => {
    const token = muster.administrator_token;
    const { group_id, ...owned } = await makeGame(muster.api, token);
    const joined = await makeMember(muster, { group_id, ...owned });
    await muster.api.ok('POST', `/group/groups/${group_id}/kick/${joined.identity_id}`, { token, body: {} });
    const path = `/group/groups/${group_id}/audit-log`;
    const [kicked, came, invited] = await read(path);
    expect(kicked).toMatchObject({ operation: 'kickMember', details: { identity_id: joined.identity_id } });
    expect(came).toMatchObject({ operation: 'consumeInvite', caller: { identity_id: joined.identity_id } });
    expect(invited).toMatchObject({ operation: 'createInvite' });
    const of_identity = `${path}?identity_id=${joined.identity_id.toUpperCase()}`;
    expect((await read(of_identity)).map(({ operation }) => operation)).toEqual(['consumeInvite']);
  });

  test('who drained a machine, to administrators only', async () => {
    const token = muster.administrator_token;
    const { machines } = await muster.api.ok('GET', '/cloud/machines', { token });
    const { machine_id } = machines[0];
    await muster.api.ok('PUT', `/cloud/machines/${machine_id}/drain`, { token, body: { deadline_ms: DAY_MS } });
    await muster.api.ok('DELETE', `/cloud/machines/${machine_id}/drain`, { token });
    const [ended, drained] = await read('/cloud/audit-log');
    expect(drained).toMatchObject({ operation: 'setMachineDrain', details: { machine_id, deadline_ms: DAY_MS } });
    expect(ended).toMatchObject({ operation: 'cancelMachineDrain', details: { machine_id } });
    expect((await read(logOf(game))).some(({ operation }) => operation.includes('Drain'))).toBe(false);
  });
});

test('audit log: a refused request, a check and a read leave no entry', async () => {
  const count = async () => (await muster.database.queries.execute(sql`select 1 from audit_entries`)).length;
  const before = await count();
  const { game_id, namespace_id, cloud_token: token } = game;
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const refused = [
    await muster.api.put(`${namespace}/version`, token, { version_id: crypto.randomUUID() }),
    await muster.api.put(`${namespace}/version`, other.cloud_token, { version_id: crypto.randomUUID() }),
    await muster.api.post(`${namespace}/mm-config`, token, { lobby_count_max: -1 }),
    await muster.api.post('/group/groups', member.token, { display_name: 'Mine' }),
    await muster.api.call('DELETE', `${namespace}/domains/unknown.example`),
  ];
  expect(refused.map(outcomeOf)).toEqual([
    '404 VERSION_NOT_FOUND',
    '404 GAME_NOT_FOUND',
    '400 API_BAD_BODY',
    '403 IDENTITY_NOT_ADMIN',
    '401 API_UNAUTHORIZED',
  ]);
  await muster.api.ok('POST', '/cloud/games/validate', { token, body: { display_name: 'Checked' } });
  await muster.api.ok('GET', logOf(game), { token });
  expect(await count()).toBe(before);
});

test('audit log: a long text is cut for its entry, also in the middle of a character of two halves', async () => {
  const display_name = `${'x'.repeat(255)}😀`;
  const body = { display_name, developer_group_id: game.group_id };
  const answer = await muster.api.post('/cloud/games', muster.administrator_token, body);
  expect(outcomeOf(answer)).toBe('400 VALIDATION_ERROR');
});

test('audit log: nothing secret is in it', async () => {
  const { api, administrator_token } = muster;
  const made = await makeGame(api, administrator_token);
  const { game_id, namespace_id, group_id, cloud_token: token } = made;
  const image_id = await uploadScript(api, made, 'setInterval(() => {}, 1000);');
  const namespace = `/cloud/games/${game_id}/namespaces/${namespace_id}`;
  const secrets: string[] = [administrator_token, token];
  const password = await Bun.password.hash('canary-password', { algorithm: 'bcrypt', cost: 4 });
  await api.ok('POST', `${namespace}/auth-user`, { token, body: { user: 'tester', password } });
  const secret_key = 'canary-of-hcaptcha';
  const captcha = { requests_before_reverify: 1, verification_ttl: 1_000, hcaptcha: { site_key: 'site', secret_key } };
  const docker = { image_id, env: { SECRET: 'canary-of-env' }, ports: { game: { port: 80, protocol: 'http' } } };
  const config = { matchmaker: { max_players: 2, captcha, docker, game_modes: { default: {} } } };
  const version = await api.post(`/cloud/games/${game_id}/versions`, token, { display_name: 'Secretive', config });
  secrets.push(password, 'canary-password', secret_key, 'canary-of-env');
  for (const kind of ['public', 'development']) {
    const body = kind === 'public' ? {} : { hostname: 'localhost', ports: {} };
    secrets.push((await api.ok('POST', `${namespace}/tokens/${kind}`, { token, body })).token);
  }
  const { code } = await api.ok('POST', `/group/groups/${group_id}/invites`, { token: administrator_token, body: {} });
  const guest = await makeGuest(api, game);
  await api.ok('POST', `/group/invites/${code}/consume`, { token: guest.token });
  const link = await api.ok('POST', '/cloud/devices/links');
  await api.ok('POST', '/cloud/devices/links/complete', {
    token: administrator_token,
    body: { device_link_token: link.device_link_token, game_id },
  });
  const { url } = await api.ok('POST', '/hub/links', { token: guest.token, body: {} });
  secrets.push(code, guest.token, link.device_link_token, new URL(url).hash.slice('#login='.length));
  const rows = await muster.database.queries.execute(sql`select * from audit_entries`);
  const text = JSON.stringify([...rows]);
  expect(text).toContain('tester');
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
  expect([version.status, version.body]).toEqual([200, { version_id: expect.any(String) }]);
});

test('audit log: pages follow each other, each entry once, newest first', async () => {
  const paged = await makeGame(muster.api, muster.administrator_token);
  const path = `/cloud/games/${paged.game_id}/namespaces/${paged.namespace_id}/domain-public-auth`;
  for (let number = 0; number < 140; number += 1) {
    await muster.api.ok('PUT', path, { token: paged.cloud_token, body: { enabled: number % 2 === 0 } });
  }
  const seen: Entry[] = [];
  const sizes: number[] = [];
  for (let next: string | undefined = ''; next !== undefined; ) {
    const query: string = next === '' ? '' : `?before=${next}`;
    const page = await muster.api.ok('GET', `${logOf(paged)}${query}`, { token: paged.cloud_token });
    sizes.push(page.entries.length);
    seen.push(...page.entries);
    next = page.next;
  }
  expect(sizes).toEqual([64, 64, 18]);
  const ids = seen.map(({ entry_id }) => entry_id);
  expect(new Set(ids).size).toBe(146);
  expect(ids).toEqual(ids.toSorted().toReversed());
  expect(seen.every(({ game_id }) => game_id === paged.game_id)).toBe(true);
});

/** Operations that change something, are open to people or tokens of developers, and are not recorded. */
const NOT_RECORDED = [
  // These check something, and change nothing.
  'POST /cloud/games/validate',
  'POST /cloud/games/{game_id}/namespaces/validate',
  'POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate',
  'POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development/validate',
  'POST /cloud/games/{game_id}/versions/validate',
  'POST /cloud/groups/validate',
  'POST /group/groups/profile/validate',
  'POST /identity/identities/self/profile/validate',
  // These create a file that can be downloaded.
  'POST /cloud/games/{game_id}/matchmaker/lobbies/export-history',
  'POST /cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs/export',
  'POST /games/{game_id}/environments/{environment_id}/servers/{server_id}/logs/export',
];

test('audit log: every operation by which people or tokens change something is recorded', async () => {
  const { paths } = await muster.api.ok('GET', '/openapi.json');
  const operations = await listOperations(muster.api);
  const developers = operations.filter(
    ({ method, kinds = [] }) =>
      method !== 'GET' && kinds.some((kind) => ['identity', 'cloud', 'service'].includes(kind)),
  );
  expect(developers.length).toBeGreaterThan(50);
  const missing = developers.filter(({ method, path }) => !paths[path][method.toLowerCase()]['x-audited']);
  expect(missing.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(NOT_RECORDED.toSorted());
});

describe('audit log: an entry that was begun', () => {
  const emitted: string[] = [];
  const openLog = (clock = muster.clock, audit_days = 90) =>
    createAuditLog({
      database: muster.database,
      clock,
      audit_days,
      events: { emit: ({ event }) => void emitted.push(event) },
      identities: { list: async () => [], requireAdministrator: async () => {} },
      groups: { get: () => Promise.reject(new Error('unused')), mayActAsMember: async () => true },
      gameOfUpload: () => Promise.reject(new Error('the database does not answer')),
      namespaceOfLobby: async () => undefined,
    });
  const changeOf = (game_id: string | undefined, details = {}): RequestedChange => ({
    entry_id: Bun.randomUUIDv7(),
    operation: 'test',
    address: '192.0.2.1',
    user_agent: null,
    details,
    caller: { kind: 'identity', identity_id: crypto.randomUUID() },
    game_id,
    namespace_id: undefined,
  });

  test('is there before the change begins, and stays if the service stops before the change ends', async () => {
    const audit = openLog();
    const game_id = crypto.randomUUID();
    const { promise, resolve } = Promise.withResolvers<void>();
    const listed: string[][] = [];
    const act = async () => {
      listed.push((await audit.ofGame(game_id, {})).entries.map(({ outcome }) => outcome));
      await promise;
    };
    const recording = audit.recorder.record(changeOf(game_id), act, () => ({}));
    await waitFor(() => listed.length > 0, 'the change to begin');
    expect(listed).toEqual([['begun']]);
    resolve();
    await recording;
    expect((await audit.ofGame(game_id, {})).entries).toMatchObject([{ outcome: 'done' }]);
  });

  test('says that the change failed if the service was at fault', async () => {
    const audit = openLog();
    const game_id = crypto.randomUUID();
    const fail = (error: unknown) =>
      audit.recorder
        .record(
          changeOf(game_id),
          () => Promise.reject(error),
          () => ({}),
        )
        .catch(() => {});
    await fail(new ServiceError('DATABASE_BUSY', {}));
    await fail(new Error('a bug'));
    await fail(new ServiceError('GAME_NOT_FOUND', {}));
    const { entries } = await audit.ofGame(game_id, {});
    expect(entries.map(({ outcome, code }) => [outcome, code])).toEqual([
      ['failed', 'ERROR'],
      ['failed', 'DATABASE_BUSY'],
    ]);
  });

  test('does not begin the change if the entry cannot be written', async () => {
    const audit = openLog();
    const change = changeOf(crypto.randomUUID());
    let times = 0;
    const act = async () => {
      times += 1;
    };
    await audit.recorder.record(change, act, () => ({}));
    // The second entry has the id of the first.
    expect(await audit.recorder.record(change, act, () => ({})).catch(() => 'refused')).toBe('refused');
    expect(times).toBe(1);
  });

  test('answers its caller, and reports it, if the end cannot be written', async () => {
    const audit = openLog();
    const change = changeOf(undefined, { upload_id: crypto.randomUUID() });
    const { details } = change;
    expect(
      await audit.recorder.record(
        change,
        async () => 'changed',
        () => details,
      ),
    ).toBe('changed');
    expect(emitted).toEqual(['audit_entry_not_completed']);
  });

  test('is removed after its days; 0 days keep everything', async () => {
    const game_id = crypto.randomUUID();
    await openLog().recorder.record(
      changeOf(game_id),
      async () => {},
      () => ({}),
    );
    const clockAfter = (days: number) => ({ now: () => new Date(muster.clock.now().getTime() + days * DAY_MS) });
    const forget = async (days: number, audit_days: number) => {
      const stopping = new AbortController();
      const audit = openLog({ ...muster.clock, ...clockAfter(days) }, audit_days);
      const loop = audit.startDeletingOld(stopping.signal);
      stopping.abort();
      await loop.stopped;
      return (await audit.ofGame(game_id, {})).entries.length;
    };
    expect(await forget(89, 90)).toBe(1);
    expect(await forget(5_000, 0)).toBe(1);
    expect(await forget(91, 90)).toBe(0);
  });
});
