import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { stat } from 'node:fs/promises';
import { sql } from 'drizzle-orm';
import { type BootstrapDependencies, bootstrap } from '../../../src/features/bootstrap/bootstrap.ts';
import { type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { createTestClock } from '../../support/clock.ts';
import { openExternalDatabase, openTestDatabase } from '../../support/database/database.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { openTestService, type TestService } from '../../support/service.ts';

const DAY_MS = 24 * 3_600_000;
const WITH_DEMO = { MUSTER_DEMO: 'on' };

/** Starts a service on a database, as a later start or another machine does. */
const start = (database_address: DatabaseAddress, settings: Record<string, string> = WITH_DEMO) =>
  openTestService(settings, { database_of: { database_address, clock: createTestClock() } });

/** Counts everything that a first start creates. */
async function countCreated(address: DatabaseAddress): Promise<Record<string, unknown>> {
  await using database = openDatabase(address, 1);
  const [row = {}] = await database.queries.execute(sql`
    select (select count(*)::int from identities) as identities, (select count(*)::int from groups) as groups,
      (select count(*)::int from group_members) as group_members, (select count(*)::int from games) as games,
      (select count(*)::int from versions) as versions, (select count(*)::int from namespaces) as namespaces,
      (select count(*)::int from builds where complete_ts is not null) as builds`);
  return { ...row };
}

const ONLY_ADMINISTRATOR = {
  identities: 1,
  groups: 1,
  group_members: 1,
  games: 0,
  versions: 0,
  namespaces: 0,
  builds: 0,
};
const ALL = { ...ONLY_ADMINISTRATOR, games: 1, versions: 2, namespaces: 2, builds: 1 };

/** Reads the demo game as its developer does. */
async function readDemo({ api, administrator_token: token }: TestService) {
  const { games } = await api.ok('GET', '/cloud/games', { token });
  return (await api.ok('GET', `/cloud/games/${games[0].game_id}`, { token })).game;
}

describe('the first start', () => {
  let muster: TestService;
  beforeAll(async () => {
    muster = await openTestService(WITH_DEMO);
  }, 300_000);
  afterAll(() => muster[Symbol.asyncDispose]());

  test('creates an administrator who owns a group', async () => {
    const { api, administrator_token: token } = muster;
    expect(muster.service.bootstrap_result.is_first_start).toBe(true);
    const { identity } = await api.ok('GET', '/identity/identities/self/profile', { token });
    expect(identity).toMatchObject({ display_name: 'Administrator', is_admin: true, is_registered: true });
    const { groups } = await api.ok('GET', '/cloud/games', { token });
    expect(groups).toMatchObject([
      { display_name: 'Developers', owner_identity_id: identity.identity_id, member_count: 1 },
    ]);
  });

  test('creates the demo as a developer would: a version with an uploaded build, deployed to both namespaces', async () => {
    const { api, administrator_token: token } = muster;
    const demo = await readDemo(muster);
    expect(demo).toMatchObject({ name_id: 'demo', display_name: 'Demo' });
    const [first, room] = demo.versions;
    expect([first.display_name, room.display_name]).toEqual(['0.0.1', 'Demo room']);
    expect(demo.namespaces).toMatchObject([
      { name_id: 'prod', version_id: room.version_id },
      { name_id: 'staging', version_id: room.version_id },
    ]);
    const { builds } = await api.ok('GET', `/cloud/games/${demo.game_id}/builds`, { token });
    const { size } = Bun.file('examples/room.ts');
    expect(builds).toMatchObject([{ display_name: 'Demo room', complete: true, content_length: size }]);
    const path = `/cloud/games/${demo.game_id}/versions`;
    const { version } = await api.ok('GET', `${path}/${room.version_id}`, { token });
    expect(version.config.matchmaker.docker.image_id).toBe(builds[0].build_id);
    // The demo's version keeps the rules of all versions: it may be created again under another name.
    const body = { display_name: 'Again', config: version.config };
    expect(await api.ok('POST', `${path}/validate`, { token, body })).toEqual({ errors: [] });
  });

  test("writes the administrator's token to a file that only its owner can read, valid for a year", async () => {
    const { api, service, clock } = muster;
    const { administrator_token_file } = service;
    expect((await stat(administrator_token_file)).mode & 0o777).toBe(0o600);
    const written = await Bun.file(administrator_token_file).text();
    expect(written).toBe(`${muster.administrator_token}\n`);
    const inspect = () => api.get('/cloud/auth/inspect', written.trim());
    clock.advance(364 * DAY_MS);
    expect((await inspect()).status).toBe(200);
    clock.advance(2 * DAY_MS);
    expect((await inspect()).body.code).toBe('CLAIMS_ENTITLEMENT_EXPIRED');
  });
});

describe('a later start', () => {
  test('creates nothing twice, and issues another token beside the old one', async () => {
    await using database = await openTestDatabase();
    await using first = await start(database.address);
    expect(await countCreated(database.address)).toEqual(ALL);
    const demo = await readDemo(first);
    await using second = await start(database.address);
    expect(second.service.bootstrap_result).toEqual({
      is_first_start: false,
      administrator_token: expect.any(String),
      metrics_token: expect.any(String),
      demo: first.service.bootstrap_result.demo,
    });
    expect(await countCreated(database.address)).toEqual(ALL);
    expect(await readDemo(second)).toEqual(demo);
    for (const token of [first.administrator_token, second.administrator_token]) {
      expect((await second.api.get('/cloud/games', token)).status).toBe(200);
    }
  });

  test('concurrent with others, on an empty database, creates everything once', async () => {
    await using database = await openExternalDatabase();
    const address = { url: database.url };
    const services = await Promise.all(Array.from({ length: 4 }, () => start(address)));
    await using opened = new AsyncDisposableStack();
    for (const service of services) opened.use(service);
    expect(await countCreated(address)).toEqual(ALL);
    const results = services.map(({ service }) => service.bootstrap_result);
    expect(results.filter(({ is_first_start }) => is_first_start)).toHaveLength(1);
    expect(new Set(results.map(({ demo }) => demo?.game_id)).size).toBe(1);
  }, 300_000);

  test('creates no demo without the setting, and creates it later with the setting', async () => {
    await using database = await openTestDatabase();
    await using without = await start(database.address, { MUSTER_DEMO: 'off' });
    expect(without.service.bootstrap_result.demo).toBeUndefined();
    expect(await countCreated(database.address)).toEqual(ONLY_ADMINISTRATOR);
    await using with_demo = await start(database.address);
    expect(with_demo.service.bootstrap_result).toMatchObject({
      is_first_start: false,
      demo: { game_id: expect.any(String) },
    });
    expect(await countCreated(database.address)).toEqual(ALL);
  });

  test('leaves a namespace on the version to which a developer moved it', async () => {
    await using database = await openTestDatabase();
    await using first = await start(database.address);
    const { api, administrator_token: token } = first;
    const demo = await readDemo(first);
    const [{ version_id }] = demo.versions;
    const path = `/cloud/games/${demo.game_id}/namespaces/${demo.namespaces[1].namespace_id}/version`;
    await api.ok('PUT', path, { token, body: { version_id } });
    await using second = await start(database.address);
    expect((await readDemo(second)).namespaces).toEqual((await readDemo(first)).namespaces);
    expect((await readDemo(second)).namespaces[1].version_id).toBe(version_id);
  });

  test('leaves a namespace that a developer added to the demo as it is', async () => {
    await using database = await openTestDatabase();
    await using first = await start(database.address);
    const { api, administrator_token: token } = first;
    const { game_id, versions } = await readDemo(first);
    const path = `/cloud/games/${game_id}`;
    const { config } = (await api.ok('GET', `${path}/versions/${versions[1].version_id}`, { token })).version;
    const body = { display_name: 'Mine', config };
    const { version_id } = await api.ok('POST', `${path}/versions`, { token, body });
    const namespace = { display_name: 'Mine', name_id: 'mine', version_id };
    await api.ok('POST', `${path}/namespaces`, { token, body: namespace });
    await using second = await start(database.address);
    const read = (await readDemo(second)).namespaces;
    expect(read.find(({ name_id }: { name_id: string }) => name_id === 'mine').version_id).toBe(version_id);
  });

  test('still shows the demo after the administrator has left its group', async () => {
    await using database = await openTestDatabase();
    await using first = await start(database.address);
    const { api, administrator_token: token } = first;
    const { demo } = first.service.bootstrap_result;
    const { groups } = await api.ok('GET', '/cloud/games', { token });
    const group = `/group/groups/${groups[0].group_id}`;
    const member = await api.ok('POST', '/identity/identities', {
      token: await first.api
        .ok('POST', `/cloud/games/${demo?.game_id}/namespaces/${demo?.namespace_id}/tokens/public`, {
          token,
          body: {},
        })
        .then((answer) => answer.token),
    });
    const { code } = await api.ok('POST', `${group}/invites`, { token, body: {} });
    await api.ok('POST', `/group/invites/${code}/consume`, { token: member.identity_token });
    const new_owner_identity_id = member.identity.identity_id;
    await api.ok('POST', `${group}/transfer-owner`, { token, body: { new_owner_identity_id } });
    await api.ok('POST', `${group}/leave`, { token, body: {} });
    await using second = await start(database.address);
    expect(second.service.bootstrap_result.demo).toEqual(demo);
    expect((await second.api.get('/demo')).status).toBe(200);
    expect(await countCreated(database.address)).toMatchObject({ games: 1, builds: 1 });
  });

  test('leaves a game of another group that is named demo as it is', async () => {
    await using database = await openTestDatabase();
    await using first = await start(database.address, { MUSTER_DEMO: 'off' });
    const { api, administrator_token: token } = first;
    const { group_id } = await api.ok('POST', '/group/groups', { token, body: { display_name: 'Others' } });
    const body = { display_name: 'Demo', name_id: 'demo', developer_group_id: group_id };
    const { game_id } = await api.ok('POST', '/cloud/games', { token, body });
    const read = () => api.ok('GET', `/cloud/games/${game_id}`, { token });
    const before = (await read()).game;
    expect(before.name_id).toBe('demo');
    await using second = await start(database.address);
    expect(second.service.bootstrap_result.demo).toBeUndefined();
    expect((await second.api.get('/demo')).status).toBe(404);
    expect((await read()).game).toEqual(before);
  });
});

test('first start: a failure at any step is completed by the next start', async () => {
  await using database = await openTestDatabase();
  const STEPS = [
    'insert on groups',
    'insert on games',
    "insert on namespaces for each row when (new.name_id = 'staging')",
    'insert on uploads',
    'update on builds',
    "insert on versions for each row when (new.display_name = 'Demo room')",
    'update on namespaces',
    "update on namespaces for each row when (new.name_id = 'staging')",
  ];
  for (const step of STEPS) {
    await using _broken = await breakDatabase(database.address, step);
    const failure = await rejectionOf(Error, start(database.address));
    expect(`${failure} ${failure.cause}`).toContain('cut short');
  }
  await using muster = await start(database.address);
  // One build is left of the start that failed after the build and before its version.
  expect(await countCreated(database.address)).toEqual({ ...ALL, builds: 2 });
  const demo = await readDemo(muster);
  expect(demo.namespaces.map((one: { version_id: string }) => one.version_id)).toEqual(
    Array(2).fill(demo.versions[1].version_id),
  );
}, 300_000);

/** Makes this step fail until it is disposed of. */
async function breakDatabase(address: DatabaseAddress, step: string): Promise<AsyncDisposable> {
  const run = async (statement: string) => {
    await using database = openDatabase(address, 1);
    await database.queries.execute(sql.raw(statement));
  };
  const [table] = step.replace(/^\w+ on /, '').split(' ');
  const rows = step.includes('for each row') ? '' : 'for each row';
  await run(`create or replace function cut_short() returns trigger language plpgsql as
    $$ begin raise exception 'cut short'; end $$`);
  await run(`create trigger cut_short before ${step} ${rows} execute function cut_short()`);
  return { [Symbol.asyncDispose]: () => run(`drop trigger cut_short on ${table}`) };
}

test.each(['the administrator', 'its group'])(
  'first start: a process that loses its lock while it looks for %s creates nothing',
  async (looked_for) => {
    const lost = new AbortController();
    const created: string[] = [];
    const lookFor = <Found>(what: string, found: Found) => {
      if (what === looked_for) lost.abort(new ServiceError('DATABASE_UNAVAILABLE', {}));
      return Promise.resolve(found);
    };
    const administrator = { identity_id: crypto.randomUUID() };
    const dependencies = {
      database: {
        exclusively: (_lock: number, work: (connection: undefined, lost: AbortSignal) => unknown) =>
          work(undefined, lost.signal),
      },
      identities: {
        findAdministrator: () => lookFor('the administrator', looked_for === 'its group' ? administrator : undefined),
        create: async () => created.push('the administrator'),
      },
      groups: { listOf: () => lookFor('its group', []), create: async () => created.push('its group') },
      tokens: { issue: async () => 'a token' },
      with_demo: false,
    } as unknown as BootstrapDependencies;
    await expect(bootstrap(dependencies)).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(created).toEqual([]);
  },
);
