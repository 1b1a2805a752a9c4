import type { Answer, Query } from './api.ts';

/** The running lobbies of a namespace: a list of which pages watch a window. */
export const LOBBIES = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies';

export type LobbyRow = NonNullable<Answer<typeof LOBBIES, 'get'>['rows']>[number];
export type LobbySummary = Answer<typeof LOBBIES, 'get'>['summary'];

/** What the service says of lobbies without sending any. */
export const SUMMARY_ONLY: Query = { count: '0' };

/** What may be said of a lobby, and how to ask for such lobbies. Several may be true. */
const STATUSES = {
  starting: { status: 'starting' },
  open: { status: 'open', is_full: 'false' },
  full: { is_full: 'true' },
  empty: { is_empty: 'true' },
  closed: { status: 'closed' },
  'old version': {},
} satisfies Record<string, Query>;

export type Status = keyof typeof STATUSES;
export const STATUS_NAMES = Object.keys(STATUSES) as Status[];

/** Longer texts are in no id. */
const ID_LENGTH_MAX = 36;

export interface LobbyFilters {
  text: string;
  mode: string;
  region: string;
  status: string;
}

/** Returns how to ask for the lobbies that match all filters, in a namespace with a version. */
export function queryOf({ text, mode, region, status }: LobbyFilters, live_version_id: string): Query {
  const id = text.trim().slice(0, ID_LENGTH_MAX);
  return {
    ...(id !== '' && { id }),
    ...(mode !== '' && { game_mode_id: mode }),
    ...(region !== '' && { region_id: region }),
    ...(isStatus(status) && STATUSES[status]),
    ...(status === 'old version' && { other_than_version_id: live_version_id }),
  };
}

/** What the badges of a lobby depend on. */
type Badged = Pick<LobbyRow, 'status' | 'is_closed' | 'player_count' | 'max_players_normal' | 'version_id'>;

/** Returns the statuses of a lobby that are worth a badge, in a namespace with a version. */
export function badgesOf(lobby: Badged, live_version_id: string): { text: Status; tone: string }[] {
  const { status, is_closed, player_count, max_players_normal, version_id } = lobby;
  const is_full = player_count >= max_players_normal;
  const badges: [is_shown: boolean, text: Status, tone: string][] = [
    [status === 'starting', 'starting', 'warn'],
    [status === 'open' && !is_full, 'open', 'good'],
    [is_full, 'full', 'quiet'],
    [is_closed, 'closed', 'bad'],
    [version_id !== live_version_id, 'old version', 'warn'],
  ];
  return badges.flatMap(([is_shown, text, tone]) => (is_shown ? [{ text, tone }] : []));
}

function isStatus(text: string): text is Status {
  return Object.hasOwn(STATUSES, text);
}
