import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { RowsBody } from '../../client/rows.ts';
import { type Answer, type Parameters, type Query, toPath, type Watchable } from './api.ts';
import { watcher } from './session.ts';
import { showAnswers, type WatchedAnswer } from './watched.ts';

/** Paths of large lists, of which a page watches a window. */
type Listed = { [Path in Watchable]: Answer<Path, 'get'> extends { row_id: string } ? Path : never }[Watchable];

type RowOf<Body> = Body extends { rows?: (infer Row)[] } ? Row : never;

/** A window of a list, and the index of its first row. */
export type RowWindow<Path extends Listed> = Omit<Answer<Path, 'get'>, 'rows' | 'changes'> & {
  rows: RowOf<Answer<Path, 'get'>>[];
  from: number;
};

/**
 * Watches a window of a list; the service sends only rows that changed. Nothing is watched while the parameters are not
 * known. While another window or filter is loaded, the rows before it stay, so that a list does not blink.
 */
export function useRows<Path extends Listed>(
  path: Path,
  parameters: Parameters<Path> | undefined,
  query: Query,
): Signal<WatchedAnswer<RowWindow<Path>>> {
  const address = parameters && toPath(path, parameters, query);
  const known = useMemo(
    () => signal<WatchedAnswer<RowWindow<Path>>>({ is: 'waiting' }),
    [path, JSON.stringify(parameters)],
  );
  useEffect(() => {
    if (address === undefined) return undefined;
    const from = Number(query.from ?? 0);
    return showAnswers(known, (show, options) =>
      watcher().watchRows<RowsBody<object>>(
        address,
        // The path says what its rows are.
        (body) => show({ ...body, from } as unknown as RowWindow<Path>),
        options,
      ),
    );
  }, [address]);
  return known;
}
