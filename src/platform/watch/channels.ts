import { LRUCache } from 'lru-cache';
import type { Queries } from '../database/database.ts';
import { type Feed, subscribeAll } from './feed.ts';
import { createGrowthChannel } from './growth-channel.ts';
import { createSharedReads } from './shared-reads.ts';
import { createStateChannel } from './state-channel.ts';
import { createVersionReads } from './version-reads.ts';
import type { View } from './views.ts';

/** Channels that nobody listens to are kept for those who come back in a moment: a poll does after each answer. */
const IDLE_MAX = 2_000;

/** What was to be seen at some moment. */
export interface Snapshot {
  /** Where it stands in the order of changes. */
  number: number;
  /** Of what grows: the number that it goes on from. */
  after: number | undefined;
  /** The body with its `watch`, as JSON. */
  text: string;
}

/** All that is to be seen under one name, read once for everybody who watches it. */
export interface Channel {
  /** What `since` would give, where that is known without reading: null for nothing yet; undefined when it has to be read. */
  peek(number: number): Snapshot | null | undefined;
  /** What came after `number`: the present of a state, the next pieces of a growth. Undefined when there is nothing yet. */
  since(number: number): Promise<Snapshot | undefined>;
  /** What there is for somebody who has seen `number`, be it nothing new; `undefined` has seen nothing. */
  present(number: number | undefined): Promise<Snapshot>;
}

/** Somebody who is told when it is worth looking again. */
export interface Listener {
  onNews(): void;
}

/** What a kind of channel does; who listens to it is none of its business. */
export interface ChannelWork extends Channel {
  /** News of a topic; without a version, all that was known may be wrong. */
  hear(topic: string, version: number | undefined): void;
  /** Reads what is new, for all who listen. Gives whether there may be more. */
  refresh(): Promise<boolean>;
  /** Forgets what can be read again. */
  rest(): void;
}

export interface Channels {
  /** Tells a listener of news from now on: listen first, then look. Gives where to look. */
  listen(sight: View, listener: Listener): Channel;
  /** Tells him no more. */
  leave(sight: View, listener: Listener): void;
  /** The present, whatever is remembered: for those who may just have changed it themselves. */
  present(sight: View): Promise<Snapshot>;
  /** The number in an index of this database; undefined for any other text. */
  readIndex(index: string | undefined): number | undefined;
}

interface Entry {
  channel: ChannelWork;
  listeners: Set<Listener>;
  refreshing: boolean;
  has_news: boolean;
  unsubscribe(): void;
}

export function createChannels(queries: Queries, feed: Feed, epoch: string): Channels {
  const tools: ChannelTools = {
    readVersions: createVersionReads(queries, feed.observe),
    share: createSharedReads(),
    show: (body, number, after) => ({
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

  const openChannel = (sight: View) =>
    sight.kind === 'state' ? createStateChannel(sight, tools) : createGrowthChannel(sight, tools);

  function open(sight: View): Entry {
    const channel = openChannel(sight);
    // Before anything is read: what changes in between is heard.
    const unsubscribe = subscribeAll(feed, sight.topics, (version, topic) => {
      channel.hear(topic, version);
      if (entry.listeners.size > 0) spread(entry);
    });
    const entry: Entry = { channel, listeners: new Set(), refreshing: false, has_news: false, unsubscribe };
    entries.set(sight.name, entry);
    return entry;
  }

  /** Reads news once for all who listen, then tells them; what comes meanwhile is read after that. */
  async function spread(entry: Entry): Promise<void> {
    entry.has_news = true;
    if (entry.refreshing) return;
    entry.refreshing = true;
    while (entry.has_news && entry.listeners.size > 0) {
      entry.has_news = false;
      try {
        entry.has_news = await entry.channel.refresh();
      } catch {
        // Whoever is told looks himself, and hears what is wrong.
      }
      for (const listener of [...entry.listeners]) listener.onNews();
    }
    entry.refreshing = false;
  }

  return {
    listen(sight, listener) {
      const entry = entries.get(sight.name) ?? open(sight);
      if (entry.listeners.size === 0) idle.delete(sight.name);
      entry.listeners.add(listener);
      return entry.channel;
    },
    leave({ name }, listener) {
      const entry = entries.get(name);
      if (!entry?.listeners.delete(listener) || entry.listeners.size > 0) return;
      entry.channel.rest();
      idle.set(name, entry);
    },
    // Of a channel of its own, which knows nothing yet.
    present: (sight) => tools.share(`now ${sight.name}`, () => openChannel(sight).present(undefined)),
    readIndex(index) {
      const [life, number = '', ...more] = index?.split('.') ?? [];
      return life === epoch && more.length === 0 && /^\d{1,15}$/.test(number) ? Number(number) : undefined;
    },
  };
}

/** What channels of all kinds work with. */
export interface ChannelTools {
  readVersions: (names: string[]) => Promise<Map<string, number>>;
  share: <Value>(name: string, read: () => Promise<Value>) => Promise<Value>;
  show: (body: object, number: number, after?: number) => Snapshot;
}
