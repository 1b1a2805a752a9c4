import { LRUCache } from 'lru-cache';
import type { Queries } from '../database/database.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { Registry } from '../registry.ts';
import { coalesceRuns } from '../runs.ts';
import { type Feed, subscribeAll } from './feed.ts';
import { createLogChannel } from './log-channel.ts';
import { createRowsChannel } from './rows-channel.ts';
import { createSharedReads } from './shared-reads.ts';
import { createStateChannel } from './state-channel.ts';
import { createVersionReads } from './version-reads.ts';
import type { View } from './views.ts';

/**
 * Maximum number of channels and topics to keep without listeners, because clients poll again right after each answer. The
 * feed reads the versions of all topics again and again, so the size of a channel is one more than the number of its topics.
 */
const IDLE_MAX = 4_000;

/** The content of a view at a moment. */
export interface Snapshot {
  /** Its position in the order of changes. */
  number: number;
  /** For a log, the number of the first entry. */
  from: number | undefined;
  /** The body with its `watch`, as JSON. */
  text: string;
}

/** A view that is read once for all its watchers. */
export interface Channel {
  /**
   * Returns the changes after `number`: the current state, or the next entries of a log. Undefined if there are none. What is
   * known needs no read, and comes without a promise.
   */
  since(number: number): MaybePromise<Snapshot | undefined>;
  /** Returns the answer to a watcher that has been sent `number` (undefined: nothing yet), even if nothing is new. */
  present(number: number | undefined): Promise<Snapshot>;
}

/** A watcher of a channel, which is called when there may be a change. */
export interface Listener {
  onChange(): void;
}

/** A channel with the methods that keep it up to date. */
export interface SharedChannel extends Channel {
  /** Records the change of a topic. */
  onChange(topic: string, version: number): void;
  /** Reads changes for all listeners. Returns whether there may be more. */
  refresh(): Promise<boolean>;
  /** Drops cached content, which can be read again. */
  evict(): void;
}

export interface Channels {
  /**
   * Notifies a listener of changes from now on, until it leaves. Returns the channel; read it after this call, so as not to
   * miss a change.
   */
  listen(view: View, listener: Listener): { channel: Channel; leave(): void };
  /** Reads the current snapshot without the cache, because the caller may just have changed the state. */
  present(view: View): Promise<Snapshot>;
  /** Returns the number of an index of this database; undefined for any other text. */
  readIndex(index: string | undefined): number | undefined;
}

interface Entry {
  channel: SharedChannel;
  listeners: Registry<Listener>;
  topic_count: number;
  unsubscribe(): void;
}

export function createChannels(queries: Queries, feed: Feed, epoch: string): Channels {
  const tools: ChannelTools = {
    readVersions: createVersionReads(queries, feed.observe),
    share: createSharedReads(),
    toSnapshot: (body, number, from) => ({
      number,
      from,
      text: JSON.stringify({ ...body, watch: { index: `${epoch}.${number}` } }),
    }),
  };
  const entries = new Map<string, Entry>();
  const idle = new LRUCache<string, Entry>({
    maxSize: IDLE_MAX,
    sizeCalculation: ({ topic_count }) => topic_count + 1,
    dispose({ unsubscribe }, name, reason) {
      if (reason !== 'evict') return;
      unsubscribe();
      entries.delete(name);
    },
  });

  function openChannel(view: View): SharedChannel {
    if (view.kind === 'state') return createStateChannel(view, tools);
    return view.kind === 'rows' ? createRowsChannel(view, tools) : createLogChannel(view, tools);
  }

  function open(view: View): Entry {
    const channel = openChannel(view);
    const listeners = new Registry<Listener>();
    const refresh = coalesceRuns(() => refreshAll(channel, listeners));
    // Subscribes before the first read, so that no change in between is missed.
    const unsubscribe = subscribeAll(feed, view.topics, (version, topic) => {
      channel.onChange(topic, version);
      if (listeners.size > 0) void refresh();
    });
    const entry = { channel, listeners, topic_count: view.topics.length, unsubscribe };
    entries.set(view.name, entry);
    return entry;
  }

  return {
    listen(view, listener) {
      const { name } = view;
      const entry = entries.get(name) ?? open(view);
      const { channel, listeners } = entry;
      if (listeners.size === 0) idle.delete(name);
      const slot = listeners.add(listener);
      return {
        channel,
        leave() {
          if (!listeners.remove(slot) || listeners.size > 0) return;
          channel.evict();
          idle.set(name, entry);
        },
      };
    },
    // Uses a new channel, which has cached nothing.
    present: (view) => tools.share(`now ${view.name}`, () => openChannel(view).present(undefined)),
    readIndex(index) {
      const [index_epoch, number = '', ...more] = index?.split('.') ?? [];
      return index_epoch === epoch && more.length === 0 && /^\d{1,15}$/.test(number) ? Number(number) : undefined;
    },
  };
}

/** Reads changes once for all listeners and notifies them, until there are no more. */
async function refreshAll(channel: SharedChannel, listeners: Registry<Listener>): Promise<void> {
  let has_more = true;
  while (has_more && listeners.size > 0) {
    // After a failure each listener reads for itself, and gets the failure then.
    has_more = await channel.refresh().catch(() => false);
    for (const listener of listeners.list()) listener.onChange();
  }
}

/** The functions that channels of all kinds use. */
export interface ChannelTools {
  readVersions: (names: string[]) => Promise<Map<string, number>>;
  share: <Value>(name: string, read: () => Promise<Value>) => Promise<Value>;
  toSnapshot: (body: object, number: number, from?: number) => Snapshot;
}
