import { sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { createStatement } from '../../../platform/database/statement.ts';
import { createChangesQuery } from '../changed-lobbies-store.ts';
import { BEFORE_ALL_IDS, type LobbyRow, lobbies, players } from '../tables.ts';

/** Maximum number of lobbies that one statement reads. */
const PAGE_MAX = 1_000;

/** A lobby as lists keep it. */
export type RunningRow = Pick<
  LobbyRow,
  'lobby_id' | 'server_id' | 'version_id' | 'game_mode' | 'region' | 'is_closed' | 'publicity' | 'player_count'
> &
  Pick<LobbyRow, 'max_players_normal' | 'max_players_direct' | 'max_players_party'> & {
    /** Unix milliseconds. */
    create_ts: number;
    is_ready: boolean;
  };

const COLUMNS = sql`lobby_id, server_id, version_id, game_mode, region, is_closed, publicity, player_count,
  max_players_normal, max_players_direct, max_players_party,
  (extract(epoch from create_ts) * 1000)::float8 as create_ts, ready_ts is not null as is_ready`;

const RUNNING = createStatement<{ namespace_id: string; after: string }>(
  (value) => sql`
    select ${COLUMNS} from ${lobbies}
    where namespace_id = ${value('namespace_id')}::uuid and stop_ts is null and lobby_id > ${value('after')}::uuid
    order by lobby_id limit ${sql.raw(String(PAGE_MAX))}`,
);

/** Returns all running lobbies of a namespace. */
export async function selectRunning(queries: Queries, namespace_id: string): Promise<RunningRow[]> {
  const running: RunningRow[] = [];
  for (;;) {
    const after = running.at(-1)?.lobby_id ?? BEFORE_ALL_IDS;
    const page = await queries.execute<RunningRow & Record<string, unknown>>(RUNNING({ namespace_id, after }));
    running.push(...page);
    if (page.length < PAGE_MAX) return running;
  }
}

/** Reads the lobbies that changed with a range of versions of a namespace's list. */
export const selectRunningChanges = createChangesQuery<RunningRow>(COLUMNS, PAGE_MAX);

const CONNECTED = createStatement<{ lobby_ids: string[] }>(
  (value) => sql`
    select lobby_id, count(*)::int as connected from ${players}
    where lobby_id = any(${value('lobby_ids')}::uuid[]) and lobby_id is not null and remove_ts is null
      and connect_ts is not null
    group by lobby_id`,
);

/** Returns how many players of lobbies are connected. Lobbies without any are missing. */
export async function selectConnected(queries: Queries, lobby_ids: string[]): Promise<Map<string, number>> {
  if (lobby_ids.length === 0) return new Map();
  const rows = await queries.execute<{ lobby_id: string; connected: number }>(CONNECTED({ lobby_ids }));
  return new Map(rows.map(({ lobby_id, connected }) => [lobby_id, connected]));
}
