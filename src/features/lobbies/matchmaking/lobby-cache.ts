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

/** What a process remembers of one namespace. */
interface Entry {
  index: LobbyIndex;
  lobbies: Followed;
  queue: Followed;
  unsubscribe(): void;
}

/** A topic that an entry keeps up with. */
interface Followed {
  topic: string;
  /** The version that the entry shows; undefined before the first read. */
  shown: number | undefined;
  /** The latest version that was announced; 'unknown' after an announcement without a version. */
  announced: number | 'unknown';
}

export type LobbyCache = ReturnType<typeof createLobbyCache>;

/** Remembers the lobbies and the queue of each namespace that is asked for, and reads what changed. */
export function createLobbyCache({ database, feed }: { database: Database; feed: Feed }) {
  const entries = new LRUCache<string, Entry>({ max: NAMESPACES_MAX, dispose: (entry) => entry.unsubscribe() });

  function openEntry(namespace_id: string): Entry {
    const lobbies: Followed = { topic: topics.lobbiesOf(namespace_id), shown: undefined, announced: 0 };
    // Version 0: a namespace in which no find has waited yet has no queue to read.
    const queue: Followed = { topic: topics.queueOf(namespace_id), shown: 0, announced: 0 };
    const unsubscribe = subscribeAll(feed, [lobbies.topic, queue.topic], (version, topic) =>
      noteAnnounced(topic === lobbies.topic ? lobbies : queue, version),
    );
    const entry: Entry = { index: new LobbyIndex(), lobbies, queue, unsubscribe };
    entries.set(namespace_id, entry);
    return entry;
  }

  /** Reads the versions, and what changed where they moved. */
  async function refresh({ index, lobbies, queue }: Entry, namespace_id: string): Promise<void> {
    const versions = await readVersions(database.queries, [lobbies.topic, queue.topic]);
    const isCurrent = ({ topic, shown }: Followed) => versions.get(topic) === shown;
    await Promise.all([
      isCurrent(lobbies) ? undefined : readLobbies(index, namespace_id, lobbies.shown),
      isCurrent(queue) ? undefined : readQueue(index, namespace_id),
    ]);
    for (const followed of [lobbies, queue]) {
      followed.shown = versions.get(followed.topic) ?? 0;
      if (followed.announced === 'unknown') followed.announced = followed.shown;
    }
  }

  async function readLobbies(index: LobbyIndex, namespace_id: string, shown: number | undefined): Promise<void> {
    const rows =
      shown === undefined
        ? await store.selectRunning(database.queries, namespace_id)
        : await store.selectChanged(database.queries, namespace_id, shown);
    setAll(index, rows);
  }

  async function readQueue(index: LobbyIndex, namespace_id: string): Promise<void> {
    index.queue = await selectQueue(database.queries, namespace_id);
  }

  return {
    /** Returns a namespace's lobbies as of the latest announced change, or as the database has them when `is_fresh`. */
    async read(namespace_id: string, { is_fresh }: { is_fresh: boolean }): Promise<LobbyIndex> {
      const entry = entries.get(namespace_id) ?? openEntry(namespace_id);
      if (is_fresh || isBehind(entry.lobbies) || isBehind(entry.queue)) await refresh(entry, namespace_id);
      return entry.index;
    },
    /** Returns a lobby as remembered: it may have changed, or stopped. */
    peek: (namespace_id: string, lobby_id: string): OpenLobby | undefined =>
      entries.get(namespace_id)?.index.get(lobby_id),
    /** Applies this process's own change. If other changes came before it, the entry stays behind until it is refreshed. */
    applyCommit(namespace_id: string, changed: number, lobby: OpenLobby): void {
      const entry = entries.get(namespace_id);
      if (!entry) return;
      entry.index.set(lobby);
      const { lobbies } = entry;
      if (lobbies.shown !== undefined && changed === lobbies.shown + 1) lobbies.shown = changed;
      noteAnnounced(lobbies, changed);
    },
    /**
     * Reads lobbies again that did not take the players planned for them: the index counts those as seated. If one of them
     * is gone or going, drops all lobbies of the namespace whose servers are going.
     */
    async reload(namespace_id: string, lobby_ids: string[]): Promise<void> {
      const entry = entries.get(namespace_id);
      if (!entry) return;
      const rows = await store.selectAlive(database.queries, lobby_ids);
      for (const lobby_id of lobby_ids) entry.index.delete(lobby_id);
      setAll(entry.index, rows);
      if (rows.length === lobby_ids.length) return;
      // Servers often end together: without this, each attempt of a request would meet only one more of their lobbies.
      const ending = await store.selectIdsOnEndingServers(database.queries, namespace_id);
      for (const lobby_id of ending) entry.index.delete(lobby_id);
    },
    /** Drops a namespace's entry, which may be wrong: it is read again when it is needed. */
    forget: (namespace_id: string) => entries.delete(namespace_id),
  };
}

function isBehind({ shown, announced }: Followed): boolean {
  return shown === undefined || announced === 'unknown' || announced > shown;
}

function noteAnnounced(followed: Followed, version: number | undefined): void {
  if (version === undefined) followed.announced = 'unknown';
  else if (followed.announced !== 'unknown') followed.announced = Math.max(followed.announced, version);
}

function setAll(index: LobbyIndex, rows: LobbyRow[]): void {
  for (const row of rows) {
    if (row.stop_ts) index.delete(row.lobby_id);
    else index.set(row);
  }
}
