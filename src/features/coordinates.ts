import { type Static, Type } from '@sinclair/typebox';
import { ServiceError } from '../platform/errors.ts';

const LATITUDE_LIMITS = { minimum: -90, maximum: 90 };
const LONGITUDE_LIMITS = { minimum: -180, maximum: 180 };

export const Coordinates = Type.Object(
  { latitude: Type.Number(LATITUDE_LIMITS), longitude: Type.Number(LONGITUDE_LIMITS) },
  { title: 'Coordinates', description: 'A place on Earth, in degrees.' },
);
export type Coordinates = Static<typeof Coordinates>;

const CLIENT = 'Where the client is, in degrees; with the other one.';

/** Query parameters with the location of the client. */
export const CoordinatesQuery = Type.Object({
  latitude: Type.Optional(Type.Number({ ...LATITUDE_LIMITS, description: CLIENT })),
  longitude: Type.Optional(Type.Number({ ...LONGITUDE_LIMITS, description: CLIENT })),
});

/**
 * Returns the location of the client, rounded to a tenth of a degree (11 km at most), so that clients nearby share what
 * they watch. Throws API_BAD_QUERY_PARAMETER if one of the two parameters is missing.
 */
export function readCoordinates({ latitude, longitude }: Static<typeof CoordinatesQuery>): Coordinates | undefined {
  if (latitude === undefined && longitude === undefined) return undefined;
  if (latitude === undefined || longitude === undefined) {
    const [parameter, other] = latitude === undefined ? ['latitude', 'longitude'] : ['longitude', 'latitude'];
    throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter, error: `expected together with "${other}"` });
  }
  return { latitude: roundToTenth(latitude), longitude: roundToTenth(longitude) };
}

/** Rounds to one decimal, without negative zero. */
export function roundToTenth(number: number): number {
  return Math.round(number * 10) / 10 + 0;
}

/** Coordinates as a table has them: two columns, which are null where the place is not known. */
export function coordinatesOf(row: { latitude: number | null; longitude: number | null }): Coordinates | undefined {
  const { latitude, longitude } = row;
  return latitude === null || longitude === null ? undefined : { latitude, longitude };
}

/** The mean radius of the Earth (IUGG, R1). */
const EARTH_RADIUS_KM = 6_371.0088;

/** Along a great circle of a round Earth, by the haversine formula; at most half a percent beside the truth. */
export function kilometersBetween(one: Coordinates, other: Coordinates): number {
  const across = haversine(radians(other.latitude - one.latitude));
  const around = haversine(radians(other.longitude - one.longitude));
  const shrunk = Math.cos(radians(one.latitude)) * Math.cos(radians(other.latitude)) * around;
  // What is rounded may come to a little more than one at the other end of the world.
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(Math.min(1, across + shrunk)));
}

const haversine = (angle: number): number => Math.sin(angle / 2) ** 2;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;
