import { beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { versionProblems } from '../../../src/features/versions/rules.ts';
import { resolveMatchmaker } from '../../../src/features/versions/settings.ts';
import { CreateVersionBody } from '../../../src/features/versions/wire.ts';
import { compileShape } from '../../../src/platform/http/shapes.ts';
import { parseAllowList } from '../../../src/platform/outbound/addresses.ts';
import { makeGame, type TestGame, uploadScript } from '../../support/game.ts';
import { shareService } from '../../support/suite.ts';

const BUILD: string = crypto.randomUUID();
const PORTS = {
  game: { port: 80, protocol: 'http', proxy: 'game_guard', dev_port: 1, dev_protocol: 'udp' },
  voice: {
    port_range: { min: 26_000, max: 26_001 },
    protocol: 'udp',
    proxy: 'none',
    dev_port_range: { min: 1, max: 2 },
  },
};
const DOCKER = {
  image_id: BUILD,
  args: ['a', 'b'],
  env: { A: 'x' },
  network_mode: 'host',
  ports: PORTS,
  build_args: {},
};
const VERIFICATION = { url: 'https://example.com', headers: { 'x-game': 'y' } };
const ACTION = { enabled: true, identity_requirement: 'none', verification: VERIFICATION };
const REGION = { tier: 'basic-1d4', idle_lobbies: { min: 1, max: 2 } };
const SHARED = {
  regions: { local: REGION },
  max_players: 4,
  max_players_direct: 5,
  max_players_party: 6,
  docker: DOCKER,
};
const KEYS = { site_key: 'x', secret_key: 'y' };

const CAPTCHA = {
  requests_before_reverify: 1,
  verification_ttl: 1,
  pow: { difficulty: 2 },
  hcaptcha: { ...KEYS, level: 'easy', hostnames: ['a.example'] },
  turnstile: { ...KEYS, domains: { 'a.example': { secret_key: 'z' } } },
};

/** A version with everything that a version can have. */
const WHOLE = {
  display_name: 'x',
  config: {
    scripts: { build: 'make' },
    engine: { unity: {} },
    kv: {},
    matchmaker: {
      ...SHARED,
      captcha: CAPTCHA,
      game_modes: {
        one: { ...SHARED, listable: true, actions: { find: ACTION, join: ACTION, create: ACTION } },
        two: {},
      },
    },
  },
};

/** A version that can be created: this release supports everything in it. */
const MODEST = {
  display_name: 'x',
  config: {
    ...WHOLE.config,
    matchmaker: {
      docker: DOCKER,
      captcha: CAPTCHA,
      tier: 'basic-1d16',
      game_modes: { one: { taggable: true, docker: DOCKER, actions: { create: { enabled: true } } }, two: {} },
    },
  },
};

/** Names and values that code could mishandle. */
const ODD_NAMES = [
  '',
  'constructor',
  'toString',
  'a\nb',
  '\r',
  '*',
  '.',
  '-',
  '0',
  'x'.repeat(300),
  'é',
  '👾',
  'local',
  'one',
];
const ODD_VALUES = [
  null,
  true,
  0,
  -1,
  1.5,
  4_294_967_295,
  4_294_967_296,
  1e308,
  '',
  '\n',
  'x'.repeat(2_000),
  [],
  [null],
  {},
  BUILD,
];

const position = fc.nat();
const value = fc.oneof(fc.constantFrom<unknown>(...ODD_VALUES), fc.jsonValue({ maxDepth: 3 }));
const change = fc.oneof(
  fc.record({ kind: fc.constant('replace' as const), position, value }),
  fc.record({ kind: fc.constant('add' as const), position, name: fc.constantFrom(...ODD_NAMES), value }),
  fc.record({ kind: fc.constant('remove' as const), position }),
  fc.record({ kind: fc.constant('rename' as const), position, name: fc.constantFrom(...ODD_NAMES) }),
);

/** Versions derived from these by this many changes. */
const changed = (versions: object[], changes_max: number) => {
  const changes = fc.array(change, { minLength: 1, maxLength: changes_max });
  return fc.tuple(fc.constantFrom(...versions), changes).map(([whole, changes]) => {
    const version: Branch = { ...structuredClone(whole) };
    for (const one of changes) apply(one, version);
    return version;
  });
};

type Branch = Record<string, unknown>;

/** Lists every member of every object and list within. */
function membersOf(branch: Branch): [Branch, string][] {
  return Object.keys(branch).flatMap((name): [Branch, string][] => {
    const member = branch[name];
    return [[branch, name], ...(isBranch(member) ? membersOf(member) : [])];
  });
}

const isBranch = (value: unknown): value is Branch => typeof value === 'object' && value !== null;

function apply(one: typeof change extends fc.Arbitrary<infer Change> ? Change : never, version: Branch): void {
  // Fresh values, because one that occurs twice could become a member of itself.
  const value = 'value' in one ? structuredClone(one.value) : undefined;
  const members = membersOf(version);
  const [branch, name] = members[one.position % members.length] ?? [version, 'config'];
  const kept = branch[name];
  // JSON lists have no named members.
  if (Array.isArray(branch)) return void branch.splice(Number(name), 1, ...('value' in one ? [value] : []));
  if (one.kind === 'remove' || one.kind === 'rename') delete branch[name];
  if (one.kind === 'rename') branch[one.name] = kept;
  if (one.kind === 'replace') branch[name] = value;
  if (one.kind === 'add') branch[one.name] = value;
}

describe('a version with random changes', () => {
  test('is refused, or has settings for every game mode', () => {
    const shape = compileShape(CreateVersionBody);
    const context = {
      region_slugs: ['local'],
      build_ids: new Set([BUILD]),
      is_site: false,
      shared_captchas: [],
      allowed_targets: parseAllowList([]),
    };
    let accepted = 0;
    const check = (version: unknown) => {
      if (!shape.accepts(version)) return expect(shape.problems(version)).not.toBeEmpty();
      const problems = versionProblems(version, context);
      for (const { path } of problems) expect(path.every((element) => typeof element === 'string')).toBe(true);
      if (problems.length > 0) return;
      accepted += 1;
      const { matchmaker } = version.config;
      const settings = resolveMatchmaker(matchmaker, context.region_slugs);
      expect([...settings.keys()]).toEqual(Object.keys(matchmaker?.game_modes ?? {}));
      for (const { runtime } of settings.values()) expect(runtime?.build_id).toBe(BUILD);
    };
    check(WHOLE);
    fc.assert(fc.property(changed([WHOLE, MODEST], 6), check), { numRuns: 1_000 });
    // Some versions were accepted, so those were tested too.
    expect(accepted).toBeGreaterThan(10);
  });

  describe('sent to the service', () => {
    const muster = shareService();
    let game: TestGame;
    let build_id: string;
    beforeAll(async () => {
      game = await makeGame(muster.api, muster.administrator_token);
      build_id = await uploadScript(muster.api, game, 'setInterval(() => {}, 1e9)');
    });

    test('is created, or refused as the fault of the caller', async () => {
      const path = `/cloud/games/${game.game_id}/versions`;
      let made_count = 0;
      const ask = async (sent: unknown) => {
        const version = JSON.stringify(sent)
          .replaceAll(BUILD, build_id)
          .replace('"display_name":"x"', `"display_name":"${crypto.randomUUID()}"`);
        const validated = await muster.api.post(`${path}/validate`, game.cloud_token, version);
        expect(validated.status).toBeOneOf([200, 400]);
        const made = await muster.api.post(path, game.cloud_token, version);
        expect(made.status).toBeOneOf([200, 400]);
        if (made.status === 200) made_count += 1;
      };
      await fc.assert(fc.asyncProperty(changed([WHOLE, MODEST], 6), ask), { numRuns: 100 });
      await fc.assert(fc.asyncProperty(changed([MODEST], 1), ask), { numRuns: 100 });
      await fc.assert(fc.asyncProperty(fc.jsonValue(), ask), { numRuns: 50 });
      // Some versions were stored, so those were tested too.
      expect(made_count).toBeGreaterThan(10);
    });

    test('is answered with a list of limited length, however much is wrong', async () => {
      const regions = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`region ${index}`, { tier: '?' }]));
      const game_modes = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`mode ${index}`, {}]));
      const args = Array.from({ length: 256 }, () => '');
      const config = { matchmaker: { regions, game_modes, docker: { args } } };
      const path = `/cloud/games/${game.game_id}/versions`;
      const wanted = { display_name: 'too much', config };
      const { status, body } = await muster.api.post(`${path}/validate`, game.cloud_token, wanted);
      expect(status).toBe(200);
      expect(body.errors).toHaveLength(256);
      const refused = await muster.api.post(path, game.cloud_token, wanted);
      expect(refused.body.metadata.errors).toEqual(body.errors);
      // The message names the first ones and says how many there are.
      expect(refused.body.message).toContain('config.matchmaker.game-modes-meta.too-many');
      expect(refused.body.message).toContain(', 248 more');
      expect(JSON.stringify(refused.body).length).toBeLessThan(64 * 1_024);
    });
  });
});
