import { createBatches } from './batches.ts';

/**
 * Something whose changes can be waited for: where news of it appears, and what it looks like now. Whoever asks with the
 * same key, as JSON, sees the same view: who asks belongs into the key when it makes a difference.
 */
export interface Watchable<Key, View> {
  topics(key: Key): string[];
  read(key: Key): Promise<View>;
  /** The same for many keys at once, in their order; an error for one that cannot be read. Where many are watched. */
  readMany?(keys: Key[]): Promise<(View | Error)[]>;
}

/** Some pieces of what grows, and the number of the piece that comes next. */
export interface Pieces<View> {
  view: View;
  next: number;
}

/** Something that only grows, by numbered pieces. */
export interface Growing<Key, View> {
  topics(key: Key): string[];
  /** Its end, as much as fits into an answer. */
  last(key: Key): Promise<Pieces<View>>;
  /** From a number on, as much as fits into an answer; `next` is that number itself when nothing is there yet. */
  from(key: Key, number: number): Promise<Pieces<View>>;
}

/** What one GET shows, ready to be read again and again. Sights of one name show the same to everybody. */
export type Sight<Body extends object = object> = { name: string; topics: string[] } & (
  | { kind: 'state'; read(): Promise<Body> }
  | { kind: 'growth'; last(): Promise<Pieces<Body>>; from(number: number): Promise<Pieces<Body>> }
);

const numbers = new WeakMap<object, number>();
let numbered = 0;

/** Two watchables may have equal keys. */
function nameOf(watchable: object, key: unknown): string {
  const number = numbers.get(watchable) ?? numbered++;
  numbers.set(watchable, number);
  return `${number} ${JSON.stringify(key)}`;
}

const batches = new WeakMap<object, (key: never) => Promise<unknown>>();

/** Reads one thing; together with others that are wanted at the same moment, where the watchable can. */
function readView<Key, View>(watchable: Watchable<Key, View>, key: Key): Promise<View> {
  if (!watchable.readMany) return watchable.read(key);
  const batch = batches.get(watchable) ?? createBatches(watchable.readMany.bind(watchable));
  batches.set(watchable, batch);
  // What is read under a watchable are views of its own.
  return (batch as (key: Key) => Promise<View>)(key);
}

/**
 * A watchable under a key, as the body of an answer without its `watch`. The body is made of the view alone: others with
 * the same key share it.
 */
export function see<Key, View, Body extends object>(
  watchable: Watchable<Key, View>,
  key: Key,
  toBody: (view: View) => Body,
): Sight<Body> {
  return {
    kind: 'state',
    name: nameOf(watchable, key),
    topics: watchable.topics(key),
    read: async () => toBody(await readView(watchable, key)),
  };
}

/** The same for what grows. */
export function follow<Key, View, Body extends object>(
  growing: Growing<Key, View>,
  key: Key,
  toBody: (view: View) => Body,
): Sight<Body> {
  const show = ({ view, next }: Pieces<View>) => ({ view: toBody(view), next });
  return {
    kind: 'growth',
    name: nameOf(growing, key),
    topics: growing.topics(key),
    last: async () => show(await growing.last(key)),
    from: async (number) => show(await growing.from(key, number)),
  };
}
