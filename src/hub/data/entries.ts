import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Refusal, Watched } from '../../client/wire.ts';
import { type Answer, type Parameters, type Query, toPath, type Watchable } from './api.ts';
import { drawInto } from './drawing.ts';
import { watcher } from './session.ts';
import { refusalsTo } from './watched.ts';

/** What a page has read of a log. */
export interface Entries<Entry> {
  entries: Entry[];
  has_begun: boolean;
  /** Whether there are as many entries as the page keeps, so that later ones are not read. */
  is_full: boolean;
  error?: Refusal;
}

interface EntriesOptions<Path extends Watchable, Entry> {
  path: Path;
  /** Nothing is watched while they are not known. */
  parameters: Parameters<Path> | undefined;
  query?: Query;
  /** How many entries the page keeps, so that its memory does not grow over time. */
  entries_max: number;
  /** `latest` drops the earliest entries when there are more; `first` reads no further. */
  keeps?: 'latest' | 'first';
  read(body: Answer<Path, 'get'>): Entry[];
}

const NONE = { entries: [], has_begun: false, is_full: false };

/** Watches a log while the component is shown. */
export function useEntries<Path extends Watchable, Entry>(
  options: EntriesOptions<Path, Entry>,
): Signal<Entries<Entry>> {
  const { path, parameters, query, entries_max, keeps = 'latest', read } = options;
  const address = parameters && toPath(path, parameters, query);
  const known = useMemo(() => signal<Entries<Entry>>(NONE), [address]);
  useEffect(() => {
    if (address === undefined) return undefined;
    const drawing = drawInto(known);
    const add = (body: Answer<Path, 'get'>) => {
      const all = [...drawing.latest.entries, ...read(body)];
      const is_full = keeps === 'first' && all.length >= entries_max;
      if (is_full) stop();
      const entries = is_full ? all.slice(0, entries_max) : all.slice(-entries_max);
      drawing.show({ entries, has_begun: true, is_full });
    };
    const stop = watcher().watch<Answer<Path, 'get'> & Watched>(
      address,
      add,
      refusalsTo({
        show: (error) => drawing.show({ ...drawing.latest, error }),
        isWaiting: () => !drawing.latest.has_begun,
      }),
    );
    return () => {
      drawing.stop();
      stop();
    };
  }, [address]);
  return known;
}
