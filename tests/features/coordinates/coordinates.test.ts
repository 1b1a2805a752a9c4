import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { coordinatesOf, kilometersBetween, readCoordinates } from '../../../src/features/coordinates.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import { refusalOf } from '../../support/refusal.ts';

const place = (latitude: number, longitude: number) => ({ latitude, longitude });
const FRANKFURT = place(50.11, 8.68);

/** Half of the circumference on which the distances are based. */
const HALF_WAY_AROUND_KM = Math.PI * 6_371.0088;
/** A millimetre. */
const NOTHING_KM = 1e-6;

const anywhere = fc.record({
  latitude: fc.double({ min: -90, max: 90, noNaN: true }),
  longitude: fc.double({ min: -180, max: 180, noNaN: true }),
});

describe('the distance between two points', () => {
  // Geodesics of WGS 84, from tables of distances between airports and cities. A sphere differs by at most half a
  // percent.
  const KNOWN: [string, ReturnType<typeof place>, number][] = [
    ['Singapore', place(1.29, 103.85), 10_263],
    ['New York', place(40.71, -74.01), 6_205],
    ['London', place(51.51, -0.13), 637],
    ['Sydney', place(-33.87, 151.21), 16_483],
  ];
  test.each(KNOWN)('Frankfurt to %s', (_, there, kilometers) => {
    expect(Math.abs(kilometersBetween(FRANKFURT, there) / kilometers - 1)).toBeLessThan(0.01);
  });

  test('is the shortest one, also over the date line and the poles', () => {
    expect(kilometersBetween(place(0, 179.5), place(0, -179.5))).toBeCloseTo(HALF_WAY_AROUND_KM / 180, 6);
    expect(kilometersBetween(place(89, 0), place(89, 180))).toBeCloseTo(HALF_WAY_AROUND_KM / 90, 6);
    expect(kilometersBetween(place(90, 20), place(90, -100))).toBeLessThan(NOTHING_KM);
    expect(kilometersBetween(place(90, 0), place(-90, 0))).toBeCloseTo(HALF_WAY_AROUND_KM, 6);
  });

  test('is a metric: zero to itself, symmetric, and never longer than by way of a third point', () => {
    fc.assert(
      fc.property(anywhere, anywhere, anywhere, (one, other, third) => {
        const direct = kilometersBetween(one, other);
        expect(kilometersBetween(one, one)).toBe(0);
        expect(direct).toBeCloseTo(kilometersBetween(other, one), 6);
        expect(direct).toBeWithin(0, HALF_WAY_AROUND_KM + NOTHING_KM);
        const detour = kilometersBetween(one, third) + kilometersBetween(third, other);
        expect(direct).toBeLessThanOrEqual(detour + 0.001);
      }),
    );
  });

  test('is finite for antipodes', () => {
    fc.assert(
      fc.property(anywhere, ({ latitude, longitude }) => {
        const antipode = place(-latitude, longitude > 0 ? longitude - 180 : longitude + 180);
        expect(kilometersBetween(place(latitude, longitude), antipode)).toBeCloseTo(HALF_WAY_AROUND_KM, 0);
      }),
    );
  });
});

describe('the coordinates in a query', () => {
  const HALVES = [
    [{ latitude: 0 }, '"longitude" is invalid: expected together with "latitude"'],
    [{ longitude: 0 }, '"latitude" is invalid: expected together with "longitude"'],
  ] as const;
  test.each(HALVES)('are refused if one is missing: %j', (query, said) => {
    const { code, message } = refusalOf(ServiceError, () => readCoordinates(query));
    expect(code).toBe('API_BAD_QUERY_PARAMETER');
    expect(message).toContain(said);
  });

  test('are undefined without either', () => {
    expect(readCoordinates({})).toBeUndefined();
  });

  test('are rounded to a tenth of a degree, so that nearby clients have the same text', () => {
    const parsed = [place(50.06, -0.04), place(50.14, 0.04)].map((query) => JSON.stringify(readCoordinates(query)));
    expect(parsed).toEqual(['{"latitude":50.1,"longitude":0}', '{"latitude":50.1,"longitude":0}']);
  });

  test('stay within the limits, and less than 8 km away', () => {
    fc.assert(
      fc.property(anywhere, (client) => {
        const { latitude, longitude } = readCoordinates(client) ?? place(NaN, NaN);
        expect(Math.abs(latitude)).toBeLessThanOrEqual(90);
        expect(Math.abs(longitude)).toBeLessThanOrEqual(180);
        expect(kilometersBetween(client, place(latitude, longitude))).toBeLessThan(8);
      }),
    );
  });
});

test('coordinates: a row of a table has them only with both columns', () => {
  expect(coordinatesOf({ latitude: 0, longitude: 0 })).toEqual(place(0, 0));
  expect(coordinatesOf({ latitude: null, longitude: null })).toBeUndefined();
});
