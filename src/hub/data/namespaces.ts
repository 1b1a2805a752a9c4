import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Answer } from './api.ts';
import { type HubPath, hrefOf } from './router.ts';

export type Game = Answer<'/cloud/games/{game_id}', 'get'>['game'];
export type Namespace = Game['namespaces'][number];

/** A namespace, with its game. */
export interface NamespaceOfGame {
  game: Game;
  namespace: Namespace;
}

/** Parameters of the API's paths. */
export interface Scope {
  game_id: string;
  namespace_id: string;
}

/** The namespace that a page is about. */
interface ShownNamespace extends NamespaceOfGame {
  scope: Scope;
  environment: { game_id: string; environment_id: string };
}

export const NamespaceContext = createContext<ShownNamespace | undefined>(undefined);

/** Returns the namespace that the page is about. */
export function useNamespace(): ShownNamespace {
  const shown = useContext(NamespaceContext);
  if (!shown) throw new Error('useNamespace is called outside the pages of a namespace');
  return shown;
}

/** Returns a function that returns the address of a page of the namespace. */
export function useHref(): (page: Pick<HubPath, 'page' | 'id'>, filters?: Record<string, string>) => string {
  const { game, namespace } = useNamespace();
  return (page, filters) => hrefOf({ game: game.name_id, namespace: namespace.name_id, ...page }, filters);
}

export function scopeOf({ game: { game_id }, namespace: { namespace_id } }: NamespaceOfGame): Scope {
  return { game_id, namespace_id };
}

export function versionName({ versions }: Game, version_id: string): string {
  return versions.find((version) => version.version_id === version_id)?.display_name ?? shortId(version_id);
}

/** Returns what a region is called, by its id or its slug. */
export function regionName({ available_regions }: Game, region: string): string {
  const found = available_regions.find(({ region_id, region_name_id }) => [region_id, region_name_id].includes(region));
  return found?.region_display_name ?? 'unknown region';
}

/** Returns the part of an id by which people recognize it. */
export function shortId(id: string): string {
  return id.slice(-12);
}
