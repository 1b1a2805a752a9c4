import { beforeAll, describe, expect, test } from 'bun:test';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService({ MUSTER_DATACENTER: 'frankfurt', MUSTER_DATACENTER_COORDINATES: '50.11,8.68' });

/** Adds a datacenter without a machine. */
async function addDatacenter(slug: string, coordinates = ''): Promise<void> {
  const settings = { MUSTER_DATACENTER: slug, MUSTER_DATACENTER_COORDINATES: coordinates };
  await using _machine = await openTestService(settings, { database_of: muster });
}

const MADRID = { latitude: 40.42, longitude: -3.7 };
const game_modes = {
  default: { actions: { create: { enabled: true, enable_public: true } } },
  european: { regions: { frankfurt: {}, london: {} } },
};

let game: Awaited<ReturnType<typeof makeControlledGame>>;
beforeAll(async () => {
  await addDatacenter('london', '51.51, -0.13');
  await addDatacenter('atlantis');
  game = await makeControlledGame(muster, { game_modes });
  await waitFor(async () => (await regionsAt('')).length === 3, 'all to be listed');
}, 300_000);

const read = (path: string) => muster.api.ok('GET', `/matchmaker${path}`, { token: game.public_token });
// biome-ignore lint/suspicious/noExplicitAny: as the answer has it.
const regionsAt = async (query: string): Promise<any[]> => (await read(`/regions${query}`)).regions;

describe('regions', () => {
  test('have the coordinates of their datacenters, and zeros without any', async () => {
    const coordinates = (await regionsAt('')).map(({ region_id, datacenter_coord }) => [region_id, datacenter_coord]);
    expect(coordinates).toEqual([
      ['atlantis', { latitude: 0, longitude: 0 }],
      ['frankfurt', { latitude: 50.11, longitude: 8.68 }],
      ['london', { latitude: 51.51, longitude: -0.13 }],
    ]);
  });

  const LISTS = [
    ['/regions', '?'],
    ['/lobbies/list', '?include_state=true&'],
  ] as const;
  test.each(LISTS)("have the distance from the client's coordinates in the answer of GET %s", async (path, query) => {
    const distancesAt = async (place: string) =>
      (await read(`${path}${query}${place}`)).regions.map(
        // biome-ignore lint/suspicious/noExplicitAny: as the answer has it.
        (region: any) => region.datacenter_distance_from_client,
      );
    const unknown = { kilometers: 0, miles: 0 };
    expect(await distancesAt('')).toEqual([unknown, unknown, unknown]);
    const [atlantis, frankfurt, london] = await distancesAt('latitude=40.42&longitude=-3.7');
    expect(atlantis).toEqual(unknown);
    // Madrid: 1,447 and 1,264 km by tables of geodesics.
    expect(frankfurt.kilometers).toBeWithin(1_430, 1_465);
    expect(frankfurt.miles).toBeCloseTo(frankfurt.kilometers / 1.609344, 0);
    expect(london.kilometers).toBeWithin(1_250, 1_280);
    expect(await distancesAt('latitude=40.44&longitude=-3.66')).toEqual([atlantis, frankfurt, london]);
  });

  const REFUSED = ['latitude=1', 'longitude=1', 'latitude=91&longitude=0', 'latitude=0&longitude=x'];
  test.each(REFUSED)('are refused to a client with the coordinates %s', async (place) => {
    for (const path of ['/regions', '/lobbies/list']) {
      const answer = await muster.api.get(`/matchmaker${path}?${place}`, game.public_token);
      expect(outcomeOf(answer)).toBe('400 API_BAD_QUERY_PARAMETER');
    }
  });

  test('have the distance 0 for a development token', async () => {
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`;
    const body = { hostname: 'localhost', ports: {} };
    const { token } = await muster.api.ok('POST', path, { token: game.cloud_token, body });
    for (const shown of ['/matchmaker/regions', '/matchmaker/lobbies/list']) {
      const { regions } = await muster.api.ok('GET', `${shown}?latitude=40.42&longitude=-3.7`, { token });
      expect(regions).toMatchObject([
        { region_id: 'dev-lcl', datacenter_distance_from_client: { kilometers: 0, miles: 0 } },
      ]);
      expect(outcomeOf(await muster.api.get(`${shown}?latitude=40`, token))).toBe('400 API_BAD_QUERY_PARAMETER');
    }
  });

  test('with changed coordinates wake the watchers of the list', async () => {
    await addDatacenter('moving', '0,0');
    const path = '/lobbies/list?latitude=-33.8&longitude=151.2';
    const distanceIn = ({ regions }: Awaited<ReturnType<typeof read>>): number | undefined =>
      regions.find(({ region_id }: { region_id: string }) => region_id === 'moving')?.datacenter_distance_from_client
        .kilometers;
    let seen = await read(path);
    const next = () => read(`${path}&watch_index=${seen.watch.index}`);
    while (distanceIn(seen) === undefined) seen = await next();
    expect(distanceIn(seen)).toBeWithin(15_100, 15_300);
    const [changed] = await Promise.all([next(), addDatacenter('moving', '-33.87,151.21')]);
    expect(distanceIn(changed)).toBeWithin(1, 10);
  });
});

/** Returns the region of the lobby that a request creates. It need not be answered: other datacenters have no machine. */
async function regionOf(ask: (signal: AbortSignal) => Promise<unknown>): Promise<string> {
  const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/logs/lobbies`;
  const list = async (): Promise<{ lobby_id: string; region_id: string }[]> =>
    (await muster.api.ok('GET', path, { token: game.cloud_token })).lobbies;
  const { game: full } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const before = new Set((await list()).map(({ lobby_id }) => lobby_id));
  const leaving = new AbortController();
  const creating = ask(leaving.signal).catch(() => undefined);
  const made = await waitFor(
    async () => (await list()).find(({ lobby_id }) => !before.has(lobby_id)),
    'a lobby to be created',
  );
  leaving.abort();
  await creating;
  const known: { region_id: string; region_name_id: string }[] = full.available_regions;
  return known.find(({ region_id }) => region_id === made.region_id)?.region_name_id ?? '';
}

describe('a lobby is created', () => {
  const CASES: [promise: string, asked: object, region: string][] = [
    ["in the version's first region if the client sends nothing", {}, 'frankfurt'],
    ['in the nearest region if the client sends coordinates', { coordinates: MADRID }, 'london'],
    [
      'in the fastest region if the client sends latencies',
      { coordinates: MADRID, latencies: { atlantis: 4.5, london: 5 } },
      'atlantis',
    ],
    ['in the fastest of those that exist', { latencies: { utopia: 0, london: 9, frankfurt: 9.5 } }, 'london'],
  ];
  const create = (body: object) => (signal: AbortSignal) =>
    muster.api.call('POST', '/matchmaker/lobbies/create', {
      token: game.public_token,
      body: { game_mode: 'default', publicity: 'public', ...body },
      signal,
    });
  test.each(CASES)('%s', async (_, asked, region) => {
    expect(await regionOf(create(asked))).toBe(region);
  });

  test('in the fastest that offers the game mode', async () => {
    const search = { game_modes: ['european'], latencies: { atlantis: 1, london: 2, frankfurt: 3 } };
    expect(await regionOf((signal) => find(muster, game, search, signal))).toBe('london');
  });

  test('in the region that the client names, whatever else it sends', async () => {
    const from_madrid = { coordinates: MADRID, latencies: { atlantis: 0 } };
    expect(await regionOf(create({ region: 'frankfurt', ...from_madrid }))).toBe('frankfurt');
    const { status, body } = await find(muster, game, {
      game_modes: ['european'],
      regions: ['frankfurt'],
      ...from_madrid,
    });
    expect([status, body.lobby?.region.region_id]).toEqual([200, 'frankfurt']);
  });
});

describe("a client's location is refused", () => {
  const MANY = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`x${index}`, 1]));
  const REFUSED: [said: string, body: object][] = [
    ['"coordinates.longitude"', { coordinates: { latitude: 1 } }],
    ['"coordinates.latitude"', { coordinates: { latitude: 90.1, longitude: 0 } }],
    ['"coordinates"', { coordinates: 1 }],
    ['"latencies.london"', { latencies: { london: 60_001 } }],
    ['"latencies.london"', { latencies: { london: -1 } }],
    ['"latencies"', { latencies: MANY }],
  ];
  test.each(REFUSED)('with a message about %s', async (said, body) => {
    const answers = [
      await find(muster, game, body),
      await muster.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default', ...body }),
    ];
    for (const answer of answers) {
      expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
      expect(answer.body.message).toContain(said);
    }
  });
});
