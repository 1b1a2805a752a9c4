import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { WatchOptions } from '../../client/client.ts';
import type { Refusal, Watched } from '../../client/wire.ts';
import { type Answer, type Parameters, type Query, toPath, type Watchable } from './api.ts';
import { drawInto } from './drawing.ts';
import { reviewSession, watcher } from './session.ts';

/** The latest answer of a path that is watched. */
export type WatchedAnswer<Body> = { is: 'waiting' } | { is: 'here'; body: Body } | { is: 'refused'; error: Refusal };

/** Watches a path while the component is shown; nothing while its parameters are not known. */
export function useWatched<Path extends Watchable>(
  path: Path,
  parameters: Parameters<Path> | undefined,
  query?: Query,
): Signal<WatchedAnswer<Answer<Path, 'get'>>> {
  const address = parameters && toPath(path, parameters, query);
  const known = useMemo(() => signal<WatchedAnswer<Answer<Path, 'get'>>>({ is: 'waiting' }), [address]);
  useEffect(() => {
    if (address === undefined) return undefined;
    return showAnswers(known, (show, options) =>
      watcher().watch<Answer<Path, 'get'> & Watched>(address, show, options),
    );
  }, [address]);
  return known;
}

type Refusals = Required<Pick<WatchOptions, 'onError' | 'onDelayed'>>;

/** Shows each body that a watch delivers, or why there is none. Returns the function that ends it. */
export function showAnswers<Body>(
  known: Signal<WatchedAnswer<Body>>,
  watch: (show: (body: Body) => void, options: Refusals) => () => void,
): () => void {
  const drawing = drawInto(known);
  const stop = watch(
    (body) => drawing.show({ is: 'here', body }),
    refusalsTo({
      show: (error) => drawing.show({ is: 'refused', error }),
      isWaiting: () => drawing.latest.is !== 'here',
    }),
  );
  return () => {
    drawing.stop();
    stop();
  };
}

interface RefusalsOptions {
  show(error: Refusal): void;
  /** Whether nothing has come yet. */
  isWaiting(): boolean;
}

/** Returns the callbacks of a watch that show why no body comes. */
export function refusalsTo({ show, isWaiting }: RefusalsOptions): Refusals {
  return {
    onError: (error) => {
      reviewSession(error);
      show(error);
    },
    onDelayed: (error) => {
      // Other delays end within seconds. A page that shows something keeps it: after a lost connection, the service counts
      // the watches of that one for a while.
      if (error.code === 'TOO_MANY_WATCHERS' && isWaiting()) show(error);
    },
  };
}

/** Sets the title of the page's tab, before Muster's name. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Muster`;
  }, [title]);
}
