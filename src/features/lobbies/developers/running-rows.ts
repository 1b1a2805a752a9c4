import { LRUCache } from 'lru-cache';
import type { Database, Tx } from '../../../platform/database/database.ts';
import { readSnapshot } from '../../../platform/database/snapshot.ts';
import { toRow } from '../../../platform/watch/rows.ts';
import { readVersions } from '../../../platform/watch/versions.ts';
import type { RowsState, WatchableRows } from '../../../platform/watch/views.ts';
import { topics } from '../../topics.ts';
import { RunningList, type Window } from './running-list.ts';
import * as store from './running-rows-store.ts';
import { toWireRow } from './running-rows-wire.ts';

/** Maximum number of namespaces whose lobbies are kept in memory. Those of others are read as a whole each time. */
const NAMESPACES_MAX = 64;

/** The running lobbies of a namespace as of a version of its list. */
interface KeptLobbies {
  version: number | undefined;
  list: RunningList;
  /** The read that was requested last. Reads run one after another, so that versions never fall. */
  last_read: Promise<unknown>;
}

type Key = Window & { namespace_id: string };

/**
 * Creates the list of a namespace's running lobbies, of which a watcher sees a window. The lobbies stay in memory: a change
 * reads only the lobbies that changed, and the connected players of the window. Watchable.
 */
export function createRunningRows({ database }: { database: Database }): WatchableRows<Key> {
  const kept = new LRUCache<string, KeptLobbies>({ max: NAMESPACES_MAX });

  async function refresh(
    tx: Tx,
    lobbies: KeptLobbies,
    { namespace_id, version }: { namespace_id: string; version: number },
  ) {
    const { list } = lobbies;
    if (lobbies.version === version) return;
    // Nothing was read yet, or the database was restored, so that the version fell.
    const must_read_all = lobbies.version === undefined || lobbies.version > version;
    const range = { namespace_id, after: lobbies.version ?? 0, version };
    const changed = must_read_all ? undefined : await store.selectRunningChanges(tx, range);
    if (changed) {
      for (const lobby of changed) {
        if (lobby.is_stopped) list.delete(lobby.lobby_id);
        else list.set(lobby);
      }
    } else {
      lobbies.version = undefined;
      const all = await store.selectRunning(tx, namespace_id);
      list.clear();
      for (const lobby of all) list.set(lobby);
    }
    lobbies.version = version;
  }

  async function readWindow(lobbies: KeptLobbies, { namespace_id, ...window }: Key): Promise<RowsState> {
    const [list_topic, connects_topic] = topicsOf(namespace_id);
    return await readSnapshot(database, async (tx) => {
      const versions = await readVersions(tx, [list_topic, connects_topic]);
      await refresh(tx, lobbies, { namespace_id, version: versions.get(list_topic) ?? 0 });
      const { matching, lobbies: shown } = lobbies.list.select(window);
      const connected = await store.selectConnected(
        tx,
        shown.map(({ lobby_id }) => lobby_id),
      );
      return {
        versions,
        head: { row_id: 'lobby_id', matching, summary: lobbies.list.summary() },
        rows: shown.map((lobby) => toRow(lobby.lobby_id, toWireRow(lobby, connected.get(lobby.lobby_id) ?? 0))),
      };
    });
  }

  return {
    topics: ({ namespace_id }) => [...topicsOf(namespace_id)],
    async read(key) {
      const lobbies = kept.get(key.namespace_id) ?? {
        version: undefined,
        list: new RunningList(),
        last_read: Promise.resolve(),
      };
      kept.set(key.namespace_id, lobbies);
      const reading = lobbies.last_read.catch(() => {}).then(() => readWindow(lobbies, key));
      lobbies.last_read = reading;
      return await reading;
    },
  };
}

function topicsOf(namespace_id: string): [list: string, connects: string] {
  return [topics.lobbiesOf(namespace_id), topics.playersOf(namespace_id)];
}
