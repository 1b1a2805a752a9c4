import { LRUCache } from 'lru-cache';
import type { Database } from '../../../../platform/database/database.ts';
import { shareRuns } from '../../../../platform/runs.ts';
import { type Feed, subscribeAll } from '../../../../platform/watch/feed.ts';
import { readVersions } from '../../../../platform/watch/versions.ts';
import { topics } from '../../../topics.ts';
import type { ChangedLobby } from '../../changed-lobbies-store.ts';
import type { AvoidedLobbies } from '../../upkeep/avoided-lobbies.ts';
import { selectQueue } from '../queue/queue-store.ts';
import * as store from './lobby-cache-store.ts';
import { LobbyIndex, type RunningLobby } from './lobby-index.ts';

const NAMESPACES_MAX = 10_000;

/** The cached lobbies and queue of a namespace. */
interface Entry {
  index: LobbyIndex;
  lobbies: WatchedTopic;
  queue: WatchedTopic;
  /** Refreshes the entry: one run at a time, so that none brings back what a faster one has replaced. */
  refresh(): Promise<boolean>;
  unsubscribe(): void;
}

/** A topic of an entry, with the version that the entry has and the latest one. */
interface WatchedTopic {
  topic: string;
  /** The version that the entry has; undefined until it is loaded. */
  cached: number | undefined;
  /** The latest version in a notification. */
  latest: number;
}

interface LobbyCacheDependencies {
  database: Database;
  feed: Feed;
  avoided: Pick<AvoidedLobbies, 'ids'>;
}

export type LobbyCache = ReturnType<typeof createLobbyCache>;

/** Creates the cache of lobbies and queues by namespace. Once a namespace is loaded, it reads only what has changed. */
export function createLobbyCache({ database, feed, avoided }: LobbyCacheDependencies) {
  const { queries } = database;
  const entries = new LRUCache<string, Entry>({ max: NAMESPACES_MAX, dispose: (entry) => entry.unsubscribe() });
  const loads = new Map<string, Promise<void>>();

  function openEntry(namespace_id: string): Entry {
    const lobbies: WatchedTopic = { topic: topics.lobbiesOf(namespace_id), cached: undefined, latest: 0 };
    // Version 0, because a namespace in which no find has ever waited has no queue to read.
    const queue: WatchedTopic = { topic: topics.queueOf(namespace_id), cached: 0, latest: 0 };
    const unsubscribe = subscribeAll(feed, [lobbies.topic, queue.topic], (version, topic) =>
      setLatest(topic === lobbies.topic ? lobbies : queue, version),
    );
    const shared_refresh = shareRuns(() => refresh(entry, namespace_id));
    const entry: Entry = { index: new LobbyIndex(), lobbies, queue, refresh: shared_refresh, unsubscribe };
    entries.set(namespace_id, entry);
    return entry;
  }

  /** Reads all running lobbies of a namespace, and its queue, into a new entry. */
  async function loadEntry(namespace_id: string): Promise<void> {
    const entry = openEntry(namespace_id);
    try {
      const versions = await readVersions(queries, [entry.lobbies.topic, entry.queue.topic]);
      await Promise.all([readPages(entry.index, namespace_id), readQueue(entry, namespace_id, versions)]);
      adoptVersions(entry, versions);
    } catch (error) {
      if (entries.peek(namespace_id) === entry) entries.delete(namespace_id);
      throw error;
    }
  }

  async function readPages(index: LobbyIndex, namespace_id: string): Promise<void> {
    let page = await store.selectRunning(queries, namespace_id);
    setAll(index, page);
    while (page.length === store.PAGE_MAX) {
      page = await store.selectRunning(queries, namespace_id, page.at(-1)?.lobby_id);
      setAll(index, page);
    }
  }

  /**
   * Reads what has changed since an entry's versions. Returns whether the entry is up to date. It must be loaded again if too
   * much has changed, or if the database was restored, so that its versions fell.
   */
  async function refresh(entry: Entry, namespace_id: string): Promise<boolean> {
    const { index, lobbies, queue } = entry;
    const { cached = 0 } = lobbies;
    const versions = await readVersions(queries, [lobbies.topic, queue.topic]);
    const version = versions.get(lobbies.topic) ?? 0;
    if (version < cached) return false;
    const [changed] = await Promise.all([
      version === cached ? [] : store.selectChanged(queries, { namespace_id, after: cached, version }),
      readQueue(entry, namespace_id, versions),
    ]);
    if (!changed) return false;
    setAll(index, changed);
    // A reload that began before the previous refresh has set the version back: what it read may be older than that.
    if ((lobbies.cached ?? 0) < cached) return await refresh(entry, namespace_id);
    adoptVersions(entry, versions);
    return true;
  }

  async function readQueue(
    { index, queue }: Entry,
    namespace_id: string,
    versions: Map<string, number>,
  ): Promise<void> {
    if (versions.get(queue.topic) !== queue.cached) index.queue = await selectQueue(queries, namespace_id);
  }

  return {
    /** Returns whether a namespace is in memory. */
    isLoaded: (namespace_id: string) => entries.peek(namespace_id)?.lobbies.cached !== undefined,
    /** Reads a namespace into memory. All callers share one load, which takes a while if the namespace has many lobbies. */
    load(namespace_id: string): Promise<void> {
      const loading = loads.get(namespace_id) ?? loadEntry(namespace_id).finally(() => loads.delete(namespace_id));
      loads.set(namespace_id, loading);
      return loading;
    },
    /**
     * Returns a namespace's lobbies as of the latest notification. With `is_fresh`, as they are in the database. Undefined if
     * the namespace must be loaded first, because it is not in memory or too much of it has changed.
     */
    async read(namespace_id: string, { is_fresh }: { is_fresh: boolean }): Promise<LobbyIndex | undefined> {
      const entry = entries.get(namespace_id);
      if (entry?.lobbies.cached === undefined) return undefined;
      entry.index.avoid(avoided.ids());
      const is_behind = is_fresh || isBehind(entry.lobbies) || isBehind(entry.queue);
      if (!is_behind || (await entry.refresh())) return entry.index;
      if (entries.peek(namespace_id) === entry) entries.delete(namespace_id);
      return undefined;
    },
    /** Returns a cached lobby, which may have changed or stopped. */
    peek: (namespace_id: string, lobby_id: string): RunningLobby | undefined =>
      entries.get(namespace_id)?.index.get(lobby_id),
    /** Returns whether finds wait in a namespace, or may wait there because it is not in memory. */
    mayHaveQueue: (namespace_id: string): boolean => entries.peek(namespace_id)?.index.queue.length !== 0,
    /** Applies a change by this process. If other changes came before it, the entry is out of date until it is refreshed. */
    applyCommit(namespace_id: string, changed: number, lobby: RunningLobby): void {
      const entry = entries.get(namespace_id);
      if (!entry) return;
      const { index, lobbies } = entry;
      // Skips an entry that is loading or newer: its read includes this change.
      if (lobbies.cached !== undefined && lobbies.cached <= changed) {
        index.set(lobby);
        if (changed === lobbies.cached + 1) lobbies.cached = changed;
      }
      setLatest(lobbies, changed);
    },
    /**
     * Reads the lobbies whose planned seats were not taken, and corrects their counts in the index. If one of them is on a
     * server that is ending, removes all lobbies of the namespace that are on such servers from the index.
     */
    async reload(namespace_id: string, lobby_ids: string[]): Promise<void> {
      const entry = entries.get(namespace_id);
      if (entry?.lobbies.cached === undefined) return;
      const { cached } = entry.lobbies;
      const rows = await store.selectLobbies(queries, lobby_ids);
      // Sets the version back, because `rows` may be older than a refresh that ran meanwhile. The refresh that runs, or
      // the next one, reads those changes again.
      entry.lobbies.cached = cached;
      for (const lobby_id of lobby_ids) entry.index.delete(lobby_id);
      setAll(
        entry.index,
        rows.filter(({ is_ending }) => !is_ending),
      );
      if (!rows.some(({ is_stopped, is_ending }) => is_ending && !is_stopped)) return;
      // Servers often end together. Without this, each attempt of a request would find only one more of their lobbies.
      const ending = await store.selectIdsOnEndingServers(queries, namespace_id);
      for (const lobby_id of ending) entry.index.delete(lobby_id);
    },
    /** Drops the entry of a namespace, because it may be wrong. It is read again when it is needed. */
    forget: (namespace_id: string) => entries.delete(namespace_id),
  };
}

function isBehind({ cached, latest }: WatchedTopic): boolean {
  return cached === undefined || latest > cached;
}

function setLatest(watched: WatchedTopic, version: number): void {
  watched.latest = Math.max(watched.latest, version);
}

function adoptVersions({ lobbies, queue }: Entry, versions: Map<string, number>): void {
  for (const watched of [lobbies, queue]) watched.cached = versions.get(watched.topic) ?? 0;
}

function setAll(index: LobbyIndex, rows: (store.CachedLobby | ChangedLobby<store.CachedLobby>)[]): void {
  for (const row of rows) {
    if (row.is_stopped) index.delete(row.lobby_id);
    else index.set(row);
  }
}
