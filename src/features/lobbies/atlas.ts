import { LRUCache } from 'lru-cache';
import type { Database } from '../../platform/database/database.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import { readVersions } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type OpenLobby, Places } from './places.ts';
import * as store from './store.ts';
import type { LobbyRow } from './tables.ts';

const NAMESPACES_MAX = 10_000;

interface Page {
  places: Places;
  /** The version of the namespace's list of lobbies that the places show. */
  shown: number;
  /** The latest version that we heard of. */
  heard: number;
  unsubscribe(): void;
}

export type Atlas = ReturnType<typeof createAtlas>;

/** The places of all namespaces that are asked for, kept up with the database by what changed. */
export function createAtlas({ database, feed }: { database: Database; feed: Feed }) {
  const pages = new LRUCache<string, Page>({ max: NAMESPACES_MAX, dispose: (page) => page.unsubscribe() });

  function openPage(namespace_id: string): Page {
    const page: Page = { places: new Places(), shown: -1, heard: 0, unsubscribe: () => {} };
    page.unsubscribe = feed.subscribe(topics.lobbiesOf(namespace_id), (version = Number.POSITIVE_INFINITY) => {
      page.heard = Math.max(page.heard, version);
    });
    pages.set(namespace_id, page);
    return page;
  }

  function note({ places }: Page, rows: LobbyRow[]): void {
    for (const row of rows) {
      if (row.stop_ts) places.delete(row.lobby_id);
      else places.set(row);
    }
  }

  async function refresh(page: Page, namespace_id: string): Promise<void> {
    const topic = topics.lobbiesOf(namespace_id);
    const version = (await readVersions(database.queries, [topic])).get(topic) ?? 0;
    if (version !== page.shown) {
      const rows =
        page.shown < 0
          ? await store.selectRunning(database.queries, namespace_id)
          : await store.selectChanged(database.queries, namespace_id, page.shown);
      note(page, rows);
    }
    page.shown = version;
    if (page.heard === Number.POSITIVE_INFINITY) page.heard = version;
  }

  return {
    /** The places of a namespace as of the latest change we heard of; as they are in the database when `is_fresh`. */
    async open(namespace_id: string, { is_fresh }: { is_fresh: boolean }): Promise<Places> {
      const page = pages.get(namespace_id) ?? openPage(namespace_id);
      if (is_fresh || page.heard > page.shown) await refresh(page, namespace_id);
      return page.places;
    },
    /** Notes how a lobby is after a change of our own. If others came in between, the page is behind until it is refreshed. */
    settle(namespace_id: string, changed: number, lobby: OpenLobby | undefined): void {
      const page = pages.get(namespace_id);
      if (!page) return;
      if (lobby) page.places.set(lobby);
      if (changed === page.shown + 1) page.shown = changed;
      page.heard = Math.max(page.heard, changed);
    },
    /** Looks again at lobbies that did not take whom we had in mind for them: they are noted as if they had. */
    async lookAgain(namespace_id: string, lobby_ids: string[]): Promise<void> {
      const page = pages.get(namespace_id);
      if (!page) return;
      const rows = await store.selectAlive(database.queries, lobby_ids);
      for (const lobby_id of lobby_ids) page.places.delete(lobby_id);
      note(page, rows);
    },
    /** What was noted of a namespace may be wrong: it is read anew. */
    forget: (namespace_id: string) => pages.delete(namespace_id),
  };
}
