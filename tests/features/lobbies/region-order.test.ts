import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { orderRegions } from '../../../src/features/lobbies/matchmaking/choices.ts';
import { checkCreate, planSearch } from '../../../src/features/lobbies/matchmaking/request-checks.ts';
import type { Position } from '../../../src/features/lobbies/wire.ts';
import { resolveMatchmaker } from '../../../src/features/versions/settings.ts';

const PARIS = { latitude: 48.86, longitude: 2.35 };
const FRANKFURT = { slug: 'frankfurt', coordinates: { latitude: 50.11, longitude: 8.68 } };
const LONDON = { slug: 'london', coordinates: { latitude: 51.51, longitude: -0.13 } };
const TOKYO = { slug: 'tokyo', coordinates: { latitude: 35.68, longitude: 139.69 } };
const NOWHERE = { slug: 'nowhere', coordinates: undefined };
/** In their default order. */
const REGIONS = [NOWHERE, TOKYO, FRANKFURT, LONDON];

describe('orderRegions: orders regions by', () => {
  const CASES: { promise: string; client: Position; order: string[] }[] = [
    { promise: 'the default order', client: {}, order: ['nowhere', 'tokyo', 'frankfurt', 'london'] },
    {
      promise: 'their distance, those without coordinates last',
      client: { coordinates: PARIS },
      order: ['london', 'frankfurt', 'tokyo', 'nowhere'],
    },
    {
      promise: 'their latency, the others in the default order',
      client: { latencies: { london: 80.5, frankfurt: 80 } },
      order: ['frankfurt', 'london', 'nowhere', 'tokyo'],
    },
    {
      promise: 'their latency, however high, the others by their distance',
      client: { coordinates: PARIS, latencies: { tokyo: 60_000 } },
      order: ['tokyo', 'london', 'frankfurt', 'nowhere'],
    },
    {
      promise: 'their distance if their latencies are equal',
      client: { coordinates: PARIS, latencies: { nowhere: 20, tokyo: 20, london: 20 } },
      order: ['london', 'tokyo', 'nowhere', 'frankfurt'],
    },
    {
      promise: 'the default order if only unknown regions were measured',
      client: { latencies: { atlantis: 0, toString: 1 } },
      order: ['nowhere', 'tokyo', 'frankfurt', 'london'],
    },
  ];
  test.each(CASES)('$promise', ({ client, order }) => {
    expect(orderRegions(REGIONS, client)).toEqual(order);
  });

  test('the default order also for a region with the name of an inherited property', () => {
    const named = [NOWHERE, { slug: 'constructor', coordinates: undefined }];
    expect(orderRegions(named, { latencies: { nowhere: 60_000 } })).toEqual(['nowhere', 'constructor']);
  });
});

const SLUGS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const coordinates = fc.record({
  // Few values, so that some are equal.
  latitude: fc.constantFrom(-90, -10, 0, 45.5, 90),
  longitude: fc.constantFrom(-180, 0, 7.25, 180),
});
const world = fc
  .shuffledSubarray([...SLUGS])
  .chain((slugs) =>
    fc.tuple(
      ...slugs.map((slug) =>
        fc.record({ slug: fc.constant(slug), coordinates: fc.option(coordinates, { nil: undefined }) }),
      ),
    ),
  );
const latencies = fc.dictionary(fc.constantFrom(...SLUGS, 'unknown'), fc.constantFrom(0, 12.5, 30, 60_000), {
  maxKeys: 6,
});
const client = fc.record({ coordinates, latencies }, { requiredKeys: [] });

describe('orderRegions: for any regions and any client', () => {
  test('every region is listed exactly once', () => {
    fc.assert(
      fc.property(world, client, (regions, where) => {
        expect(orderRegions(regions, where).toSorted()).toEqual(regions.map(({ slug }) => slug).toSorted());
      }),
    );
  });

  test('no region is listed after one with a higher measured latency', () => {
    fc.assert(
      fc.property(world, client, (regions, where) => {
        const order = orderRegions(regions, where).map((slug) => where.latencies?.[slug] ?? Infinity);
        expect(order).toEqual(order.toSorted((one, other) => (one < other ? -1 : Number(one > other))));
      }),
    );
  });

  test('equal measurements keep the default order', () => {
    fc.assert(
      fc.property(world, latencies, (regions, measured) => {
        const order = orderRegions(regions, { latencies: measured });
        const unmeasured = (slugs: string[]) => slugs.filter((slug) => !(slug in measured));
        expect(unmeasured(order)).toEqual(unmeasured(regions.map(({ slug }) => slug)));
      }),
    );
  });

  test('regions with coordinates come first among those without a measurement', () => {
    fc.assert(
      fc.property(world, coordinates, (regions, here) => {
        const known = new Set<string>(regions.filter((region) => region.coordinates).map(({ slug }) => slug));
        const order = orderRegions(regions, { coordinates: here }).map((slug) => known.has(slug));
        expect(order.lastIndexOf(true)).toBe(known.size - 1);
      }),
    );
  });

  test('a find is in the requested regions, or else in the first region with the game mode', () => {
    const offered = fc.uniqueArray(fc.constantFrom(...SLUGS), { minLength: 1 });
    fc.assert(
      fc.property(world, client, offered, fc.boolean(), (regions, where, wanted, is_asked) => {
        const known = regions.map(({ slug }) => slug);
        const modes = resolveMatchmaker(
          {
            game_modes: {
              default: {
                regions: Object.fromEntries(wanted.map((slug) => [slug, {}])),
                actions: { create: { enabled: true } },
              },
            },
          },
          known,
        );
        const there: string[] = wanted.filter((slug) => known.includes(slug));
        fc.pre(there.length > 0);
        const order = orderRegions(regions, where);
        const offering: string[] = wanted;
        const best = order.find((slug) => offering.includes(slug)) ?? '';
        const requested = is_asked ? { regions: there } : {};
        const search = planSearch({ game_modes: ['default'], ...where, ...requested }, modes, order);
        const expected: string[] = is_asked ? there : [best];
        expect(search.regions).toEqual(expected);
        expect(search.new_lobby?.region).toBe(expected[0] ?? '');
        expect(checkCreate({ game_mode: 'default', ...where }, modes, order).region).toBe(best);
      }),
    );
  });
});
