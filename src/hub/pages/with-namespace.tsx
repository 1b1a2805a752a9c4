import type { ComponentChildren } from 'preact';
import { type Game, NamespaceContext, scopeOf } from '../data/namespaces.ts';
import { useWatched } from '../data/watched.ts';
import { NotFoundPage } from '../parts/not-found.tsx';
import { Notice } from '../parts/notice.tsx';

/** Finds a game by the name in the address, and keeps it current. */
export function WithGame({ name, children }: { name: string; children(game: Game): ComponentChildren }) {
  const games = useWatched('/cloud/games', {}).value;
  if (games.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (games.is === 'refused') return <Notice error={games.error} />;
  const found = games.body.games.find(({ name_id }) => name_id === name);
  if (!found) return <NotFoundPage what={`game: ${name}`} />;
  return (
    <GameById key={found.game_id} game_id={found.game_id}>
      {children}
    </GameById>
  );
}

function GameById({ game_id, children }: { game_id: string; children(game: Game): ComponentChildren }) {
  const watched = useWatched('/cloud/games/{game_id}', { game_id }).value;
  if (watched.is === 'waiting') return <p class="quiet">Loading …</p>;
  if (watched.is === 'refused') return <Notice error={watched.error} />;
  return <>{children(watched.body.game)}</>;
}

interface WithNamespaceProps {
  game_name: string;
  name: string;
  children: ComponentChildren;
}

/** Finds a namespace by the names in the address, for the pages below it. */
export function WithNamespace({ game_name, name, children }: WithNamespaceProps) {
  return (
    <WithGame name={game_name}>
      {(game) => {
        const namespace = game.namespaces.find(({ name_id }) => name_id === name);
        if (!namespace) return <NotFoundPage what={`namespace: ${name}`} />;
        const scope = scopeOf({ game, namespace });
        const { game_id, namespace_id } = scope;
        const environment = { game_id, environment_id: namespace_id };
        return (
          <NamespaceContext.Provider key={namespace_id} value={{ game, namespace, scope, environment }}>
            {children}
          </NamespaceContext.Provider>
        );
      }}
    </WithGame>
  );
}
