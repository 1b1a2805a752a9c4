import type { Answer } from './api.ts';
import type { Deployment } from './deployments.ts';
import { type Game, shortId, versionName } from './namespaces.ts';

export const VISITS = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies/{lobby_id}/visits';

/** A moment in the life of a lobby or a server. */
export interface LifeEvent {
  name: string;
  at: string | number | undefined;
  /** What its mark looks like: a player comes (`in`) or goes (`out`), or a change. By default it is a stage of the life. */
  kind?: 'in' | 'out' | 'change';
}

type Visit = Answer<typeof VISITS, 'get'>['visits'][number];

/** How a player lost a seat, in words. The end of a lobby is one event, not one for each of its players. */
const DEPARTURES: Record<NonNullable<Visit['remove_reason']>, string | undefined> = {
  disconnected: 'left',
  seat_expired: 'did not connect in time',
  timed_out: 'had the seat for too long',
  lobby_stopped: undefined,
  request_ended: 'gave up waiting',
  kicked: 'was kicked',
};

/** Returns how players came to a lobby and left it. */
export function eventsOfVisits(visits: Visit[]): LifeEvent[] {
  return visits.flatMap(({ player_id, create_ts, connect_ts, remove_ts, remove_reason }): LifeEvent[] => {
    const player = `player ${shortId(player_id)}`;
    const departure = remove_reason && DEPARTURES[remove_reason];
    return [
      { name: `${player} got a seat`, at: create_ts, kind: 'in' },
      { name: `${player} connected`, at: connect_ts, kind: 'in' },
      { name: `${player} ${departure}`, at: departure && remove_ts, kind: 'out' },
    ];
  });
}

/** Returns when other versions went live while a lobby ran. */
export function eventsOfDeployments(
  game: Game,
  deployments: Deployment[],
  { create_ts, stop_ts }: { create_ts: string; stop_ts: string | undefined },
): LifeEvent[] {
  return deployments
    .filter(({ deploy_ts }) => deploy_ts > create_ts && (stop_ts === undefined || deploy_ts < stop_ts))
    .map(({ deploy_ts, version_id }) => ({
      name: `${versionName(game, version_id)} went live`,
      at: deploy_ts,
      kind: 'change',
    }));
}
