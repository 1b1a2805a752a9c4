import { counted } from '../../terminal/terminal.ts';
import { paths } from '../paths.ts';
import type { Scope, Session } from '../session.ts';
import type { Finding } from './finding.ts';

/** Refusals of the matchmaker because of a limit, and what an operator can do. */
const ADVICE: Record<string, string> = {
  MATCHMAKER_TOO_MANY_LOBBIES: "Raise the namespace's lobby_count_max, or let finds wait with wait_ms.",
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: "Raise the namespace's max_players_per_client, if these are people.",
  MATCHMAKER_QUEUE_FULL: "The namespace's queue of waiting finds was full: raise lobby_count_max, or add a machine.",
  MATCHMAKER_LOBBY_NOT_READY:
    'Lobbies become ready too late: see muster logs, and what the server does at its start. If the logs say that servers wait for ports, widen MUSTER_SERVER_PORTS, or add a machine.',
};

/** Returns the limits that players of a namespace have hit within the last hour; none without a namespace. */
export async function checkNamespaceLimits(session: Session, scope: Scope | undefined): Promise<Finding[]> {
  if (!scope) return [];
  const { game, namespace } = scope;
  const path = `${paths.namespace(scope)}/counters`;
  const { steps } = await session.api.get<{ steps: { refused: Record<string, number> }[] }>(path, {
    query: { window: 'hour' },
  });
  const counts = new Map<string, number>();
  for (const { refused } of steps) {
    for (const [code, count] of Object.entries(refused)) counts.set(code, (counts.get(code) ?? 0) + count);
  }
  return [...counts].flatMap(([code, count]) => {
    const advice = ADVICE[code];
    const what = `${game.name_id} ${namespace.name_id}: ${counted(count, 'request of a player', 'requests of players')} ended with ${code} within the last hour.`;
    return advice === undefined ? [] : [{ what, advice }];
  });
}
