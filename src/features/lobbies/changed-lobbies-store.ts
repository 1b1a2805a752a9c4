import { type SQL, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { createStatement } from '../../platform/database/statement.ts';
import { topics } from '../topics.ts';
import { CHANGES_KEPT, lobbies, lobbyChanges } from './tables.ts';

const KEPT = sql.raw(String(CHANGES_KEPT));

/**
 * Returns a common table expression that records which lobbies changed with the new versions of lists, for a statement
 * that bumps lists in `bumped`. The query selects `(namespace_id, lobby_id)` of the lobbies that may change. If a
 * statement bumps a list without this expression, readers miss nothing, but must read all lobbies of the namespace.
 */
export function recordChanges(changing: SQL): SQL {
  return sql`recorded_changes as (
    insert into ${lobbyChanges} (namespace_id, slot, version, lobby_ids)
    select namespace_id, version % ${KEPT}, version,
      coalesce(array_agg(distinct lobby_id) filter (where lobby_id is not null), '{}')
    from (
      select split_part(topic, ':', 2)::uuid as namespace_id, version from bumped
      where starts_with(topic, ${topics.lobbiesOf('')})
    ) as lists left join (${changing}) as changing using (namespace_id)
    group by namespace_id, version
    on conflict (namespace_id, slot) do update set version = excluded.version, lobby_ids = excluded.lobby_ids
  )`;
}

/** The versions of a namespace's list after `after`, up to and including `version`. */
export interface VersionRange {
  namespace_id: string;
  after: number;
  version: number;
}

/** A lobby that has changed; of one that has stopped, or that was deleted since, only the id matters. */
export type ChangedLobby<Lobby> = (Lobby & { is_stopped: false }) | { lobby_id: string; is_stopped: true };

/**
 * Returns a function that reads the lobbies that changed with a range of versions, as they are now. It returns undefined if
 * they are more than the maximum, or if the changes of a version are not known, because it is too old or because a process of
 * an earlier release bumped it.
 */
export function createChangesQuery<Lobby extends object>(
  columns: SQL,
  lobbies_max: number,
): (queries: Queries, range: VersionRange) => Promise<ChangedLobby<Lobby>[] | undefined> {
  const read = createStatement<VersionRange & { slots: number[] }>(
    (value) => sql`
      with kept as materialized (
        select lobby_ids from ${lobbyChanges}
        where namespace_id = ${value('namespace_id')}::uuid and slot = any(${value('slots')}::int[])
          and version > ${value('after')}::bigint and version <= ${value('version')}::bigint
      ),
      kept_count as (
        select count(*) = ${value('version')}::bigint - ${value('after')}::bigint as is_complete from kept
      ),
      changed as (
        select distinct lobby_id from kept, unnest(lobby_ids) as lobby_id limit ${sql.raw(String(lobbies_max + 1))}
      )
      select is_complete, lobby_id is not null as has_changed, ${columns},
        ${lobbies.lobby_id} is null or stop_ts is not null as is_stopped
      from kept_count left join changed on is_complete left join ${lobbies} using (lobby_id)
      order by lobby_id`,
  );

  return async (queries, range) => {
    const { after, version } = range;
    if (version - after > CHANGES_KEPT) return undefined;
    const slots = Array.from({ length: version - after }, (_, index) => (after + 1 + index) % CHANGES_KEPT);
    const rows = await queries.execute<ReadLobby<Lobby>>(read({ ...range, slots }));
    if (!rows[0]?.is_complete || rows.length > lobbies_max) return undefined;
    return rows.filter(({ has_changed }) => has_changed);
  };
}

/** A row of the statement. If no lobby has changed, there is one row without a lobby. */
type ReadLobby<Lobby> = ChangedLobby<Lobby> & { is_complete: boolean; has_changed: boolean } & Record<string, unknown>;
