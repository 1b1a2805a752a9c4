import { createBatches } from './batches.ts';
import type { Row } from './rows.ts';

/**
 * A state whose changes can be watched. All callers with the same key (as JSON) share one read, so everything that the
 * state depends on, such as the caller, must be in the key.
 */
export interface Watchable<Key, State> {
  /** Returns the topics that changes of the state bump. */
  topics(key: Key): string[];
  read(key: Key): Promise<State>;
  /** Reads the states of many keys, in their order, with an error for each that cannot be read. */
  readMany?(keys: Key[]): Promise<(State | Error)[]>;
}

/** Some entries of an append-only log, and the number of the next entry. */
export interface LogPage<Content> {
  content: Content;
  next: number;
}

/** A log of numbered entries, which never change. */
export interface AppendOnlyLog<Key, Content> {
  topics(key: Key): string[];
  /** Reads the latest entries, as many as fit into an answer. */
  last(key: Key): Promise<LogPage<Content>>;
  /** Reads the entries for a watcher that has seen nothing, if those are not the latest. */
  first?(key: Key): Promise<LogPage<Content>>;
  /** Returns the number of the next entry, where that is quicker than reading the latest ones. */
  end?(key: Key): Promise<number>;
  /** Reads the entries from a number on, as many as fit into an answer. If there are none, `next` is that number. */
  from(key: Key, number: number): Promise<LogPage<Content>>;
}

/** A list at a moment. */
export interface RowsState {
  /** The versions of the topics at exactly that moment: read in one snapshot of the database with the rows. */
  versions: ReadonlyMap<string, number>;
  /** The members of the body besides the rows. Bodies with changes have them too. */
  head: object;
  rows: Row[];
}

/** A list of which watchers are sent only the rows that change. All callers with the same key share one read. */
export interface WatchableRows<Key> {
  topics(key: Key): string[];
  read(key: Key): Promise<RowsState>;
}

/**
 * The answer of a GET, which can be read repeatedly. Views with the same name have the same content, once its route has
 * completed the name.
 */
export type View<Body extends object = object> = { name: string; topics: string[] } & (
  | { kind: 'state'; read(): Promise<Body> }
  | { kind: 'rows'; read(): Promise<RowsState> }
  | {
      kind: 'log';
      last(): Promise<LogPage<Body>>;
      first?(): Promise<LogPage<Body>>;
      end?(): Promise<number>;
      from(number: number): Promise<LogPage<Body>>;
    }
);

const numbers = new WeakMap<object, number>();
let next_number = 0;

/** Returns the name of a view. It begins with a number of the watchable, because two watchables may have equal keys. */
function nameOf(watchable: object, key: unknown): string {
  const number = numbers.get(watchable) ?? next_number++;
  numbers.set(watchable, number);
  return `${number} ${JSON.stringify(key)}`;
}

const batches = new WeakMap<object, (key: never) => Promise<unknown>>();

/** Reads a state. If the watchable can batch, reads it together with the others of the same turn. */
function readState<Key, State>(watchable: Watchable<Key, State>, key: Key): Promise<State> {
  if (!watchable.readMany) return watchable.read(key);
  const batch = batches.get(watchable) ?? createBatches(watchable.readMany.bind(watchable));
  batches.set(watchable, batch);
  // The map is keyed by the watchable, so its batch has the watchable's types.
  return (batch as (key: Key) => Promise<State>)(key);
}

/**
 * Returns the view of a state: the body of an answer without its `watch`. `toBody` must depend only on the state, because
 * all callers of a route with the same key share the body. (`viewOf` in http/pipeline.ts adds the route to the name.)
 */
export function watchState<Key, State, Body extends object>(
  watchable: Watchable<Key, State>,
  key: Key,
  toBody: (state: State) => Body,
): View<Body> {
  return {
    kind: 'state',
    name: nameOf(watchable, key),
    topics: watchable.topics(key),
    read: async () => toBody(await readState(watchable, key)),
  };
}

/**
 * Returns the view of a list. A body has all `rows`, or the `changes` since the state that its watcher has seen, with the
 * other members of `head`.
 */
export function watchRows<Key>(list: WatchableRows<Key>, key: Key): View<never> {
  return { kind: 'rows', name: nameOf(list, key), topics: list.topics(key), read: () => list.read(key) };
}

/** Returns the view of an append-only log. Each body has the entries since the previous one. */
export function watchLog<Key, Content, Body extends object>(
  log: AppendOnlyLog<Key, Content>,
  key: Key,
  toBody: (content: Content) => Body,
): View<Body> {
  const toBodyPage = ({ content, next }: LogPage<Content>) => ({ content: toBody(content), next });
  const { first, end } = log;
  return {
    kind: 'log',
    name: nameOf(log, key),
    topics: log.topics(key),
    last: async () => toBodyPage(await log.last(key)),
    ...(first && { first: async () => toBodyPage(await first(key)) }),
    ...(end && { end: () => end(key) }),
    from: async (number) => toBodyPage(await log.from(key, number)),
  };
}
