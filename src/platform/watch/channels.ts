import { LRUCache } from 'lru-cache';
import type { Queries } from '../database/database.ts';
import { coalesceRuns } from '../runs.ts';
import { type Feed, subscribeAll } from './feed.ts';
import { createLogChannel } from './log-channel.ts';
import { createSharedReads } from './shared-reads.ts';
import { createStateChannel } from './state-channel.ts';
import { createVersionReads } from './version-reads.ts';
import type { View } from './views.ts';

/** Channels without listeners that are kept: a poll comes back a moment after each answer. */
const IDLE_MAX = 2_000;

/** What a view showed at some moment. */
export interface Snapshot {
  /** Its position in the order of changes. */
  number: number;
  /** Of a log: the number of its first entry. */
  after: number | undefined;
  /** The body with its `watch`, as JSON. */
  text: string;
}

/** A view that is read once for all who watch it. */
export interface Channel {
  /** Returns what `since` would, where that is known without reading: null for nothing new; undefined to read first. */
  peek(number: number): Snapshot | null | undefined;
  /** Returns what came after `number`: the current state, or the log's next entries. Undefined when nothing has. */
  since(number: number): Promise<Snapshot | undefined>;
  /** Returns what to answer to a watcher that has seen `number`, even if nothing is new; `undefined` has seen nothing. */
  present(number: number | undefined): Promise<Snapshot>;
}

/** Is called when there may be something new. */
export interface Listener {
  onChange(): void;
}

/** A channel together with what keeps it up to date. */
export interface SharedChannel extends Channel {
  /** Takes note of a topic's change; without a version, everything that is known may be outdated. */
  onChange(topic: string, version: number | undefined): void;
  /** Reads what is new, for all listeners. Returns whether there may be more. */
  refresh(): Promise<boolean>;
  /** Drops what can be read again. */
  evict(): void;
}

export interface Channels {
  /** Notifies a listener of changes from now on. Returns the channel: listen first, then look. */
  listen(view: View, listener: Listener): Channel;
  leave(view: View, listener: Listener): void;
  /** Reads the current snapshot, ignoring what is known: the caller may just have changed it. */
  present(view: View): Promise<Snapshot>;
  /** Returns the number of an index of this database; undefined for any other text. */
  readIndex(index: string | undefined): number | undefined;
}

interface Entry {
  channel: SharedChannel;
  listeners: Set<Listener>;
  unsubscribe(): void;
}

export function createChannels(queries: Queries, feed: Feed, epoch: string): Channels {
  const tools: ChannelTools = {
    readVersions: createVersionReads(queries, feed.observe),
    share: createSharedReads(),
    toSnapshot: (body, number, after) => ({
      number,
      after,
      text: JSON.stringify({ ...body, watch: { index: `${epoch}.${number}` } }),
    }),
  };
  const entries = new Map<string, Entry>();
  const idle = new LRUCache<string, Entry>({
    max: IDLE_MAX,
    dispose({ unsubscribe }, name, reason) {
      if (reason !== 'evict') return;
      unsubscribe();
      entries.delete(name);
    },
  });

  const openChannel = (view: View) =>
    view.kind === 'state' ? createStateChannel(view, tools) : createLogChannel(view, tools);

  function open(view: View): Entry {
    const channel = openChannel(view);
    const listeners = new Set<Listener>();
    const refresh = coalesceRuns(() => refreshAll(channel, listeners));
    // Subscribes before the first read, so that no change in between is missed.
    const unsubscribe = subscribeAll(feed, view.topics, (version, topic) => {
      channel.onChange(topic, version);
      if (listeners.size > 0) void refresh();
    });
    const entry = { channel, listeners, unsubscribe };
    entries.set(view.name, entry);
    return entry;
  }

  return {
    listen(view, listener) {
      const entry = entries.get(view.name) ?? open(view);
      if (entry.listeners.size === 0) idle.delete(view.name);
      entry.listeners.add(listener);
      return entry.channel;
    },
    leave({ name }, listener) {
      const entry = entries.get(name);
      if (!entry?.listeners.delete(listener) || entry.listeners.size > 0) return;
      entry.channel.evict();
      idle.set(name, entry);
    },
    // Through a new channel, which knows nothing yet.
    present: (view) => tools.share(`now ${view.name}`, () => openChannel(view).present(undefined)),
    readIndex(index) {
      const [life, number = '', ...more] = index?.split('.') ?? [];
      return life === epoch && more.length === 0 && /^\d{1,15}$/.test(number) ? Number(number) : undefined;
    },
  };
}

/** Reads what is new once for all listeners, then notifies them, until there is nothing more. */
async function refreshAll(channel: SharedChannel, listeners: ReadonlySet<Listener>): Promise<void> {
  let has_more = true;
  while (has_more && listeners.size > 0) {
    // After a failure each listener looks again by itself, and gets the failure then.
    has_more = await channel.refresh().catch(() => false);
    for (const listener of [...listeners]) listener.onChange();
  }
}

/** What channels of both kinds work with. */
export interface ChannelTools {
  readVersions: (names: string[]) => Promise<Map<string, number>>;
  share: <Value>(name: string, read: () => Promise<Value>) => Promise<Value>;
  toSnapshot: (body: object, number: number, after?: number) => Snapshot;
}
