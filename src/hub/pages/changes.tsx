import { useNamespace } from '../data/namespaces.ts';
import { useTitle } from '../data/watched.ts';
import { AuditLog } from '../parts/audit-log.tsx';

/** Who changed what of the game, in all of its namespaces. */
export function ChangesPage() {
  const { game, scope } = useNamespace();
  useTitle(`Changes · ${game.display_name}`);
  return (
    <>
      <div class="head">
        <h1>Changes</h1>
        <p class="quiet">Every change of {game.display_name} by a person or a token.</p>
      </div>
      <AuditLog path="/cloud/games/{game_id}/audit-log" parameters={{ game_id: scope.game_id }} />
    </>
  );
}
