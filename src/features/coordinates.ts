import { type Static, Type } from '@sinclair/typebox';
import { ServiceError } from '../platform/errors.ts';

const LATITUDE_LIMITS = { minimum: -90, maximum: 90 };
const LONGITUDE_LIMITS = { minimum: -180, maximum: 180 };

export const Coordinates = Type.Object(
  { latitude: Type.Number(LATITUDE_LIMITS), longitude: Type.Number(LONGITUDE_LIMITS) },
  { title: 'Coordinates', description: 'A position on Earth, in degrees.' },
);
export type Coordinates = Static<typeof Coordinates>;

const CLIENT = 'Position of the client, in degrees. Send latitude and longitude together.';

/** Query parameters with the position of the client. */
export const CoordinatesQuery = Type.Object({
  latitude: Type.Optional(Type.Number({ ...LATITUDE_LIMITS, description: CLIENT })),
  longitude: Type.Optional(Type.Number({ ...LONGITUDE_LIMITS, description: CLIENT })),
});

/**
 * Returns the position of the client, rounded to a tenth of a degree, which moves it by 8 km at most, so that clients near
 * each other watch the same view. Throws API_BAD_QUERY_PARAMETER if one of the two parameters is missing.
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

/** Returns the coordinates in two columns of a row; undefined if they are null. */
export function coordinatesOf(row: { latitude: number | null; longitude: number | null }): Coordinates | undefined {
  const { latitude, longitude } = row;
  return latitude === null || longitude === null ? undefined : { latitude, longitude };
}

/** The mean radius of the Earth (IUGG, R1). */
const EARTH_RADIUS_KM = 6_371.0088;

/**
 * Returns the distance along a great circle, by the haversine formula. The Earth is not quite round, so the result is up
 * to half a percent off.
 */
export function kilometersBetween(one: Coordinates, other: Coordinates): number {
  const by_latitude = haversine(radians(other.latitude - one.latitude));
  const by_longitude = haversine(radians(other.longitude - one.longitude));
  const longitude_at_latitudes = Math.cos(radians(one.latitude)) * Math.cos(radians(other.latitude)) * by_longitude;
  // Rounding may give a little more than one for points on opposite sides of the Earth.
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(Math.min(1, by_latitude + longitude_at_latitudes)));
}

const haversine = (angle: number): number => Math.sin(angle / 2) ** 2;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;
