import { coordinatesOf } from '../../coordinates.ts';
import type { Datacenters } from '../../datacenters/datacenters.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';
import type { GameModeSettings, Versions } from '../../versions/versions.ts';
import type { Position } from '../wire.ts';
import { orderRegions } from './request-checks.ts';

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

/** Returns the game modes and regions of a namespace. If the client's position is unknown, this process's region is first. */
export async function listChoices(
  { versions, datacenters, own_region }: ChoicesDependencies,
  namespace: Pick<NamespaceRow, 'game_id' | 'version_id'>,
  position: Position,
): Promise<Choices> {
  const modes = await versions.gameModes(namespace);
  const all = await datacenters.list();
  const isOwn = ({ slug }: { slug: string }) => slug === own_region;
  const own_first = [...all.filter(isOwn), ...all.filter((region) => !isOwn(region))];
  const is_located = position.coordinates !== undefined || position.latencies !== undefined;
  if (!is_located) return { modes, regions: own_first.map(({ slug }) => slug) };
  const located = own_first.map((region) => ({ slug: region.slug, coordinates: coordinatesOf(region) }));
  return { modes, regions: orderRegions(located, position) };
}
