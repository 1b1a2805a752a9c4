import { type Signal, signal, useSignalEffect } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Refusal, Watched } from '../../client/wire.ts';
import { type Answer, type Parameters, type Query, toPath, type Watchable } from './api.ts';
import { paced } from './frames.ts';
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
    const frames = paced(known);
    const stop = watcher().watch<Answer<Path, 'get'> & Watched>(address, (body) => frames.show({ is: 'here', body }), {
      onError: (error) => {
        reviewSession(error);
        frames.show({ is: 'refused', error });
      },
    });
    return () => {
      frames.stop();
      stop();
    };
  }, [address]);
  return known;
}

/** Sets the title of the page's tab. */
export function useTitle(title: () => string): void {
  useSignalEffect(() => {
    document.title = title();
  });
}
