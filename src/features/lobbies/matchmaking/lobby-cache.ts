import { LRUCache } from 'lru-cache';
import type { Database } from '../../../platform/database/database.ts';
import { type Feed, subscribeAll } from '../../../platform/watch/feed.ts';
import { readVersions } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import { LobbyIndex, type OpenLobby } from './lobby-index.ts';
import { selectQueue } from './queue-store.ts';

const NAMESPACES_MAX = 10_000;

/** The cached lobbies and queue of a namespace. */
interface Entry {
  index: LobbyIndex;
  lobbies: WatchedTopic;
  queue: WatchedTopic;
  unsubscribe(): void;
}

/** A topic of an entry, with the version that the entry has and the latest one. */
interface WatchedTopic {
  topic: string;
  /** The version that the entry has; undefined before the first read. */
  cached: number | undefined;
  /** The latest version in a notification; 'unknown' after a notification without a version. */
  latest: number | 'unknown';
}

export type LobbyCache = ReturnType<typeof createLobbyCache>;

/** Creates the cache of lobbies and queues by namespace. It reads only what has changed. */
export function createLobbyCache({ database, feed }: { database: Database; feed: Feed }) {
  const entries = new LRUCache<string, Entry>({ max: NAMESPACES_MAX, dispose: (entry) => entry.unsubscribe() });

  function openEntry(namespace_id: string): Entry {
    const lobbies: WatchedTopic = { topic: topics.lobbiesOf(namespace_id), cached: undefined, latest: 0 };
    // Version 0, because a namespace in which no find has ever waited has no queue to read.
    const queue: WatchedTopic = { topic: topics.queueOf(namespace_id), cached: 0, latest: 0 };
    const unsubscribe = subscribeAll(feed, [lobbies.topic, queue.topic], (version, topic) =>
      setLatest(topic === lobbies.topic ? lobbies : queue, version),
    );
    const entry: Entry = { index: new LobbyIndex(), lobbies, queue, unsubscribe };
    entries.set(namespace_id, entry);
    return entry;
  }

  /** Reads the versions of an entry's topics, and the content of those that have changed. */
  async function refresh({ index, lobbies, queue }: Entry, namespace_id: string): Promise<void> {
    const versions = await readVersions(database.queries, [lobbies.topic, queue.topic]);
    const isCurrent = ({ topic, cached }: WatchedTopic) => versions.get(topic) === cached;
    await Promise.all([
      isCurrent(lobbies) ? undefined : readLobbies(index, namespace_id, lobbies.cached),
      isCurrent(queue) ? undefined : readQueue(index, namespace_id),
    ]);
    for (const watched of [lobbies, queue]) {
      watched.cached = versions.get(watched.topic) ?? 0;
      if (watched.latest === 'unknown') watched.latest = watched.cached;
    }
  }

  async function readLobbies(index: LobbyIndex, namespace_id: string, cached: number | undefined): Promise<void> {
    const rows =
      cached === undefined
        ? await store.selectRunning(database.queries, namespace_id)
        : await store.selectChanged(database.queries, namespace_id, cached);
    setAll(index, rows);
  }

  async function readQueue(index: LobbyIndex, namespace_id: string): Promise<void> {
    index.queue = await selectQueue(database.queries, namespace_id);
  }

  return {
    /** Returns a namespace's lobbies as of the latest notification. With `is_fresh`, as they are in the database. */
    async read(namespace_id: string, { is_fresh }: { is_fresh: boolean }): Promise<LobbyIndex> {
      const entry = entries.get(namespace_id) ?? openEntry(namespace_id);
      if (is_fresh || isBehind(entry.lobbies) || isBehind(entry.queue)) await refresh(entry, namespace_id);
      return entry.index;
    },
    /** Returns a cached lobby, which may have changed or stopped. */
    peek: (namespace_id: string, lobby_id: string): OpenLobby | undefined =>
      entries.get(namespace_id)?.index.get(lobby_id),
    /** Applies a change by this process. If other changes came before it, the entry is out of date until it is refreshed. */
    applyCommit(namespace_id: string, changed: number, lobby: OpenLobby): void {
      const entry = entries.get(namespace_id);
      if (!entry) return;
      entry.index.set(lobby);
      const { lobbies } = entry;
      if (lobbies.cached !== undefined && changed === lobbies.cached + 1) lobbies.cached = changed;
      setLatest(lobbies, changed);
    },
    /**
     * Reads lobbies again that did not take the players planned for them, because the index counts these as seated. If one of
     * the lobbies has ended or is ending, removes all lobbies of the namespace whose servers are ending.
     */
    async reload(namespace_id: string, lobby_ids: string[]): Promise<void> {
      const entry = entries.get(namespace_id);
      if (!entry) return;
      const rows = await store.selectAlive(database.queries, lobby_ids);
      for (const lobby_id of lobby_ids) entry.index.delete(lobby_id);
      setAll(entry.index, rows);
      if (rows.length === lobby_ids.length) return;
      // Servers often end together. Without this, each attempt of a request would find only one more of their lobbies.
      const ending = await store.selectIdsOnEndingServers(database.queries, namespace_id);
      for (const lobby_id of ending) entry.index.delete(lobby_id);
    },
    /** Drops the entry of a namespace, because it may be wrong. It is read again when it is needed. */
    forget: (namespace_id: string) => entries.delete(namespace_id),
  };
}

function isBehind({ cached, latest }: WatchedTopic): boolean {
  return cached === undefined || latest === 'unknown' || latest > cached;
}

function setLatest(watched: WatchedTopic, version: number | undefined): void {
  if (version === undefined) watched.latest = 'unknown';
  else if (watched.latest !== 'unknown') watched.latest = Math.max(watched.latest, version);
}

function setAll(index: LobbyIndex, rows: LobbyRow[]): void {
  for (const row of rows) {
    if (row.stop_ts) index.delete(row.lobby_id);
    else index.set(row);
  }
}
