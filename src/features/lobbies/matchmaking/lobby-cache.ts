import { LRUCache } from 'lru-cache';
import type { Database } from '../../../platform/database/database.ts';
import { type Feed, subscribeAll } from '../../../platform/watch/feed.ts';
import { readVersions } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import { selectQueue } from '../queue-store.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import { type OpenLobby, Places } from './lobby-index.ts';

const NAMESPACES_MAX = 10_000;

interface Page {
  places: Places;
  /** Of the namespace's list of lobbies, and of its queue. */
  list: Followed;
  queue: Followed;
  unsubscribe(): void;
}

/** Something that the places show. */
interface Followed {
  topic: string;
  /** The version of it that they show. */
  shown: number;
  /** The latest version that we heard of. */
  heard: number;
}

export type Atlas = ReturnType<typeof createAtlas>;

/** The places of all namespaces that are asked for, kept up with the database by what changed. */
export function createAtlas({ database, feed }: { database: Database; feed: Feed }) {
  const pages = new LRUCache<string, Page>({ max: NAMESPACES_MAX, dispose: (page) => page.unsubscribe() });

  function openPage(namespace_id: string): Page {
    const list = { topic: topics.lobbiesOf(namespace_id), shown: -1, heard: 0 };
    const queue = { topic: topics.queueOf(namespace_id), shown: 0, heard: 0 };
    const unsubscribe = subscribeAll(feed, [list.topic, queue.topic], (version = Number.POSITIVE_INFINITY, topic) => {
      const followed: Followed = topic === list.topic ? list : queue;
      followed.heard = Math.max(followed.heard, version);
    });
    const page: Page = { places: new Places(), list, queue, unsubscribe };
    pages.set(namespace_id, page);
    return page;
  }

  function note({ places }: Page, rows: LobbyRow[]): void {
    for (const row of rows) {
      if (row.stop_ts) places.delete(row.lobby_id);
      else places.set(row);
    }
  }

  /** One look more only where something has changed: a namespace in which nobody waits has no queue to read. */
  async function refresh(page: Page, namespace_id: string): Promise<void> {
    const { list, queue } = page;
    const versions = await readVersions(database.queries, [list.topic, queue.topic]);
    const isShown = ({ topic, shown }: Followed) => versions.get(topic) === shown;
    await Promise.all([
      isShown(list) ? undefined : readLobbies(page, namespace_id),
      isShown(queue) ? undefined : readQueue(page, namespace_id),
    ]);
    for (const followed of [list, queue]) {
      followed.shown = versions.get(followed.topic) ?? 0;
      if (followed.heard === Number.POSITIVE_INFINITY) followed.heard = followed.shown;
    }
  }

  async function readLobbies(page: Page, namespace_id: string): Promise<void> {
    const rows =
      page.list.shown < 0
        ? await store.selectRunning(database.queries, namespace_id)
        : await store.selectChanged(database.queries, namespace_id, page.list.shown);
    note(page, rows);
  }

  async function readQueue({ places }: Page, namespace_id: string): Promise<void> {
    places.queue = await selectQueue(database.queries, namespace_id);
  }

  return {
    /** The places of a namespace as of the latest change we heard of; as they are in the database when `is_fresh`. */
    async open(namespace_id: string, { is_fresh }: { is_fresh: boolean }): Promise<Places> {
      const page = pages.get(namespace_id) ?? openPage(namespace_id);
      const has_news = page.list.heard > page.list.shown || page.queue.heard > page.queue.shown;
      if (is_fresh || has_news) await refresh(page, namespace_id);
      return page.places;
    },
    /** A lobby as we remember it: it may have changed, or stopped. */
    recall: (namespace_id: string, lobby_id: string): OpenLobby | undefined =>
      pages.get(namespace_id)?.places.get(lobby_id),
    /** Notes how a lobby is after a change of our own. If others came in between, the page is behind until it is refreshed. */
    settle(namespace_id: string, changed: number, lobby: OpenLobby | undefined): void {
      const page = pages.get(namespace_id);
      if (!page) return;
      if (lobby) page.places.set(lobby);
      const { list } = page;
      if (changed === list.shown + 1) list.shown = changed;
      list.heard = Math.max(list.heard, changed);
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
