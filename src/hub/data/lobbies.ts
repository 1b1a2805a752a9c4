import { type Signal, useSignal } from '@preact/signals';
import type { Answer, Parameters, Query } from './api.ts';
import { type RowWindow, useRows } from './rows.ts';
import type { WatchedAnswer } from './watched.ts';

/** The running lobbies of a namespace: a list of which pages watch a window. */
export const LOBBIES = '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/lobbies';

export type LobbyRow = NonNullable<Answer<typeof LOBBIES, 'get'>['rows']>[number];
export type LobbySummary = Answer<typeof LOBBIES, 'get'>['summary'];

/** What the service says of a list without sending any row. */
export const SUMMARY_ONLY: Query = { count: '0' };

/** How many rows a page watches, and how many of them are above the window. The range moves in steps, not with each row. */
const WATCHED = { count: 150, before: 25, step: 50 };

interface LobbyWindow {
  watched: Signal<WatchedAnswer<RowWindow<typeof LOBBIES>>>;
  /** Moves the window to where the page is scrolled to: the index of the first row that is needed. */
  moveTo(first: number): void;
}

/** Watches the lobbies of a namespace that are in sight. */
export function useLobbyWindow(scope: Parameters<typeof LOBBIES>, filters: Query = {}): LobbyWindow {
  const first = useSignal(0);
  const { count, before, step } = WATCHED;
  const from = Math.max(0, Math.floor((first.value - before) / step) * step);
  const watched = useRows(LOBBIES, scope, { ...filters, from: String(from), count: String(count) });
  const moveTo = (row: number) => {
    first.value = row;
  };
  return { watched, moveTo };
}

/** The statuses by which lobbies are filtered, with the query for each. A lobby may have several. */
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

interface LobbyFilters {
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
