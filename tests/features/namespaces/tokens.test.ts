import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
let namespace: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
});

const makeDevelopment = (body: unknown) => muster.api.post(`${namespace}/tokens/development`, game.cloud_token, body);
const PORT = { protocol: 'udp', port: 7_777 };
const range = (min: number, max: number) => ({ protocol: 'udp', port_range: { min, max } });
const several = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`port-${index}`, { ...PORT, port: index }]));

describe('ports of a development token are refused', () => {
  const CASES: [string, object, string[]][] = [
    ['an invalid label', { Game: PORT }, ['ports.0.label-invalid']],
    ['a label that is too long', { ['x'.repeat(17)]: PORT }, ['ports.0.label-invalid']],
    ['neither a port nor a range', { game: { protocol: 'udp' } }, ['ports.0.missing-port-and-port-range']],
    ['a port and a range', { game: { ...PORT, ...range(1, 2) } }, ['ports.0.duplicate-port-and-port-range']],
    ...['http', 'https', 'tcp_tls'].map((protocol): [string, object, string[]] => [
      `a range of ${protocol}`,
      { game: { ...range(1, 2), protocol } },
      ['ports.0.unsupported-port-range'],
    ]),
    ['a reversed range', { game: range(2, 1) }, ['ports.0.range-min-gt-max']],
    ['overlapping ranges', { a: range(1, 5), b: range(6, 9), c: range(5, 5) }, ['ports.2.ranges-overlap']],
    [
      'the same port twice',
      { a: PORT, b: { ...PORT, protocol: 'tcp' }, c: PORT },
      ['ports.2.port-protocol-not-unique'],
    ],
    ['more than 16', several(17), ['ports-too-many']],
    ['a label that is a property of every object', { Game: { ...PORT, label: 'game' } }, ['ports.0.label-invalid']],
  ];
  for (const [what, ports, problems] of CASES) {
    test(what, async () => {
      const answer = await makeDevelopment({ hostname: 'localhost', ports });
      expect(outcomeOf(answer)).toBe('400 VALIDATION_ERROR');
      expect(answer.body.metadata.errors.map(({ path }: { path: string[] }) => path.join('.'))).toEqual(problems);
    });
  }

  const SHAPELESS: unknown[] = [
    {},
    { hostname: '' },
    { hostname: 'x'.repeat(256) },
    { hostname: 'localhost', ports: { game: { port: 80 } } },
    { hostname: 'localhost', ports: { game: { ...PORT, protocol: 'quic' } } },
    { hostname: 'localhost', ports: { game: { ...PORT, port: 65_536 } } },
    { hostname: 'localhost', ports: { game: { ...PORT, port: -1 } } },
    { hostname: 'localhost', ports: { game: { protocol: 'udp', port_range: { min: 1 } } } },
    { hostname: 'localhost', ports: { 'a\nb': null } },
    { hostname: 'localhost', ports: several(257) },
  ];
  for (const body of SHAPELESS) {
    test(JSON.stringify(body).slice(0, 80), async () => {
      expect(outcomeOf(await makeDevelopment(body))).toBe('400 API_BAD_BODY');
    });
  }
});

describe('a development token', () => {
  test('is for its namespace, and the matchmaker answers it with its host name and ports', async () => {
    const ports = {
      game: { protocol: 'https', port: 443, label: 5, nonsense: 'x' },
      voice: range(9_000, 9_010),
      ...several(14),
    };
    const { token } = (await makeDevelopment({ hostname: 'dev.example.com', ports })).body;
    expect(token).toStartWith('dev_prod.');
    const found = await muster.api.ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['any'] } });
    expect(Object.keys(found.ports)).toEqual(Object.keys(ports));
    expect(found.ports.game).toEqual({
      hostname: 'dev.example.com',
      host: 'dev.example.com:443',
      port: 443,
      is_tls: true,
    });
    expect(found.ports.voice).toMatchObject({
      hostname: 'dev.example.com',
      port_range: { min: 9_000, max: 9_010 },
      is_tls: false,
    });
  });

  test('needs no ports, and its ranges may be adjacent', async () => {
    expect(outcomeOf(await makeDevelopment({ hostname: 'localhost' }))).toBe('200');
    expect(
      outcomeOf(
        await makeDevelopment({ hostname: 'localhost', ports: { a: range(0, 4), b: range(5, 4_294_967_295) } }),
      ),
    ).toBe('200');
  });
});

describe('a public token', () => {
  test('is for its namespace and its players only', async () => {
    const { token } = await muster.api.ok('POST', `${namespace}/tokens/public`, { token: game.cloud_token });
    expect(token).toStartWith('pub_prod.');
    const setup = await muster.api.ok('POST', '/identity/identities', { token });
    expect(setup.game_id).toBe(game.game_id);
    expect(outcomeOf(await muster.api.get(namespace, token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
  });

  test('of a namespace with dashes in its name has a label without them', async () => {
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const body = { display_name: 'Canary', name_id: 'blue-canary', version_id: read.versions[0].version_id };
    const path = `/cloud/games/${game.game_id}/namespaces`;
    const { namespace_id } = await muster.api.ok('POST', path, { token: game.cloud_token, body });
    const { token } = await muster.api.ok('POST', `${path}/${namespace_id}/tokens/public`, { token: game.cloud_token });
    expect(token).toStartWith('pub_blue_canary.');
    expect((await muster.api.ok('POST', '/identity/identities', { token })).game_id).toBe(game.game_id);
  });
});
