import { createBatches } from './batches.ts';

/**
 * A state whose changes can be waited for. All callers with the same key, as JSON, share one read: whatever makes a
 * difference to the answer, such as who the caller is, belongs in the key.
 */
export interface Watchable<Key, State> {
  /** Where changes of the state are announced. */
  topics(key: Key): string[];
  read(key: Key): Promise<State>;
  /** Reads the states of many keys in their order; an error for a state that cannot be read. Optional. */
  readMany?(keys: Key[]): Promise<(State | Error)[]>;
}

/** Some entries of an append-only log, and the number of the entry that comes next. */
export interface LogPage<Content> {
  content: Content;
  next: number;
}

/** A log of numbered entries, to which entries are only ever appended. */
export interface AppendOnlyLog<Key, Content> {
  topics(key: Key): string[];
  /** Reads the newest entries, as many as fit into an answer. */
  last(key: Key): Promise<LogPage<Content>>;
  /** Reads the entries from a number on, as many as fit into an answer; `next` is that number when there are none yet. */
  from(key: Key, number: number): Promise<LogPage<Content>>;
}

/** What one GET answers, ready to be read again and again. Views of one name have the same content. */
export type View<Body extends object = object> = { name: string; topics: string[] } & (
  | { kind: 'state'; read(): Promise<Body> }
  | { kind: 'log'; last(): Promise<LogPage<Body>>; from(number: number): Promise<LogPage<Body>> }
);

const numbers = new WeakMap<object, number>();
let numbered = 0;

/** Two watchables may have equal keys, so the name begins with the watchable's number. */
function nameOf(watchable: object, key: unknown): string {
  const number = numbers.get(watchable) ?? numbered++;
  numbers.set(watchable, number);
  return `${number} ${JSON.stringify(key)}`;
}

const batches = new WeakMap<object, (key: never) => Promise<unknown>>();

/** Reads one state, together with the others that are asked for in the same turn where the watchable can batch. */
function readState<Key, State>(watchable: Watchable<Key, State>, key: Key): Promise<State> {
  if (!watchable.readMany) return watchable.read(key);
  const batch = batches.get(watchable) ?? createBatches(watchable.readMany.bind(watchable));
  batches.set(watchable, batch);
  // The map is keyed by the watchable, so its batch has the watchable's types.
  return (batch as (key: Key) => Promise<State>)(key);
}

/**
 * Returns the view of a state: the body of an answer without its `watch`. `toBody` uses the state alone, because all
 * callers with the same key share the body.
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

/** Returns the view of an append-only log. Each body has the entries since the body before. */
export function watchLog<Key, Content, Body extends object>(
  log: AppendOnlyLog<Key, Content>,
  key: Key,
  toBody: (content: Content) => Body,
): View<Body> {
  const toBodyPage = ({ content, next }: LogPage<Content>) => ({ content: toBody(content), next });
  return {
    kind: 'log',
    name: nameOf(log, key),
    topics: log.topics(key),
    last: async () => toBodyPage(await log.last(key)),
    from: async (number) => toBodyPage(await log.from(key, number)),
  };
}
