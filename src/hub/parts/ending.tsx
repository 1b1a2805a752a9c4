import type { Answer } from '../data/api.ts';
import { useNamespace } from '../data/namespaces.ts';
import { useWatched, type WatchedAnswer } from '../data/watched.ts';

const END = '/games/{game_id}/environments/{environment_id}/servers/{server_id}/end';

/** How a server ended, in words. */
export function Ending({ id }: { id: string }) {
  const watched = useEnd(id);
  const end = watched.is === 'here' ? watched.body.end : undefined;
  if (!end) return null;
  return end.has_crashed ? (
    <div class="notice" role="alert">
      {end.summary}
    </div>
  ) : (
    <p>{end.summary}</p>
  );
}

/** Watches how a server ended. */
export function useEnd(id: string): WatchedAnswer<Answer<typeof END, 'get'>> {
  const { environment } = useNamespace();
  return useWatched(END, { ...environment, server_id: id }).value;
}
