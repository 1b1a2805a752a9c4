import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Refusal, Watched } from '../../client/wire.ts';
import { type Answer, type Parameters, type Query, toPath, type Watchable } from './api.ts';
import { paced } from './frames.ts';
import { reviewSession, watcher } from './session.ts';

/** Entries of a log that follow each other, each with its number. */
export interface Entries<Entry> {
  entries: { number: number; entry: Entry }[];
  /** How many earlier entries are not kept any more. */
  dropped: number;
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

const NONE = { entries: [], dropped: 0, has_begun: false, is_full: false };

/** Watches a log while the component is shown. */
export function useEntries<Path extends Watchable, Entry>(
  options: EntriesOptions<Path, Entry>,
): Signal<Entries<Entry>> {
  const { path, parameters, query, entries_max, keeps = 'latest', read } = options;
  const address = parameters && toPath(path, parameters, query);
  const known = useMemo(() => signal<Entries<Entry>>(NONE), [address]);
  useEffect(() => {
    if (address === undefined) return undefined;
    const frames = paced(known);
    let latest = known.value;
    const show = (next: Entries<Entry>) => {
      latest = next;
      frames.show(next);
    };
    const add = (body: Answer<Path, 'get'>) => {
      const { entries, dropped } = latest;
      const added = read(body).map((entry, index) => ({ number: dropped + entries.length + index, entry }));
      const all = [...entries, ...added];
      if (keeps === 'first' && all.length >= entries_max) {
        stop();
        show({ entries: all.slice(0, entries_max), dropped, has_begun: true, is_full: true });
        return;
      }
      const kept = all.slice(-entries_max);
      show({ entries: kept, dropped: dropped + all.length - kept.length, has_begun: true, is_full: false });
    };
    const stop = watcher().watch<Answer<Path, 'get'> & Watched>(address, add, {
      onError: (error) => {
        reviewSession(error);
        show({ ...latest, error });
      },
    });
    return () => {
      frames.stop();
      stop();
    };
  }, [address]);
  return known;
}
