import { type Coordinates, coordinatesOf, kilometersBetween } from '../../coordinates.ts';
import type { Datacenter, Datacenters } from '../../datacenters/datacenters.ts';
import type { GameModeSettings, Versions } from '../../versions/versions.ts';
import type { Position } from '../wire.ts';

/** The game modes and regions that a request may choose from. */
export interface Choices {
  modes: ReadonlyMap<string, GameModeSettings>;
  /** Slugs, the best region for the client first. */
  regions: string[];
}

export interface ChoicesDependencies {
  versions: Versions;
  datacenters: Datacenters;
  /** Slug of the datacenter that this process runs in. */
  own_region: string;
}

/**
 * Returns the slugs of all regions, the best one for the client first. If the client's position is unknown, this process's
 * region is first.
 */
export function listRegionsBestFirst(datacenters: Datacenter[], own_region: string, position: Position): string[] {
  const own = datacenters.find(({ slug }) => slug === own_region);
  const own_first = own ? [own, ...datacenters.filter((region) => region !== own)] : datacenters;
  const is_located = position.coordinates !== undefined || position.latencies !== undefined;
  if (!is_located) return own_first.map(({ slug }) => slug);
  const located = own_first.map((region) => ({ slug: region.slug, coordinates: coordinatesOf(region) }));
  return orderRegions(located, position);
}

/**
 * Returns the slugs of regions, sorted by the latency that the client measured, then by the distance from the client.
 * Regions without either come last, in their order.
 */
export function orderRegions(
  regions: { slug: string; coordinates: Coordinates | undefined }[],
  { coordinates: client, latencies = {} }: Position,
): string[] {
  // A map, because a region may have the name of a member that every object has.
  const measured = new Map(Object.entries(latencies));
  const ranked = regions.map(({ slug, coordinates }) => ({
    slug,
    latency: measured.get(slug) ?? Number.POSITIVE_INFINITY,
    kilometers: client && coordinates ? kilometersBetween(client, coordinates) : Number.POSITIVE_INFINITY,
  }));
  // Two infinities differ by NaN, which counts as equal.
  ranked.sort((one, other) => one.latency - other.latency || one.kilometers - other.kilometers || 0);
  return ranked.map(({ slug }) => slug);
}
