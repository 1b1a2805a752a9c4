import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { namespaces } from '../namespaces/tables.ts';
import type { ServerPort } from '../servers/servers.ts';
import { servers } from '../servers/tables.ts';

/** Comes before the ids of all rows: the first page of a list begins after it. */
export const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000';

/** Why a lobby stopped. */
export const STOP_REASONS = [
  'server_ended',
  'not_ready_in_time',
  'idle',
  'removed',
  'machine_lost',
  'machine_drained',
] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/** How many versions of a namespace's list share a step: see `changed_step`. */
const CHANGED_STEP = 16;

/** Rooms that players meet in. Each has a server of its own. */
export const lobbies = pgTable(
  'lobbies',
  {
    lobby_id: uuid().primaryKey(),
    game_id: uuid().notNull(),
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id),
    version_id: uuid().notNull(),
    /** Name id of the game mode. */
    game_mode: text().notNull(),
    /** Slug of the datacenter. */
    region: text().notNull(),
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    max_players_normal: integer().notNull(),
    max_players_direct: integer().notNull(),
    max_players_party: integer().notNull(),
    /** The number of taken seats: players of the lobby who were not removed. */
    player_count: integer().notNull(),
    tags: jsonb().$type<Record<string, string>>().notNull(),
    /** Players who know this code can join; unique among the running lobbies of a namespace. */
    code: text(),
    /** Set for a custom lobby: whether it is listed and found, or only joined by id or code. */
    publicity: text({ enum: ['public', 'private'] }),
    is_closed: boolean().notNull(),
    /** When it was closed; null while it is open. */
    closed_ts: moment(),
    /** The lobby's own state: JSON as text. The service passes it on and does not interpret it. */
    state: text(),
    /** The addresses at which players reach it; known once it is ready. */
    ports: jsonb().$type<Record<string, ServerPort>>(),
    create_ts: moment().notNull(),
    ready_ts: moment(),
    /** When it became empty; null while it has players. */
    idle_ts: moment(),
    /** When its seats are checked next, at the latest when the first of them ends: see `checkSeats`. */
    seats_check_ts: moment().notNull().defaultNow(),
    stop_ts: moment(),
    stop_reason: text({ enum: STOP_REASONS }),
    /** The version of the namespace's list of lobbies with which it last changed. */
    changed: bigint({ mode: 'number' }).notNull(),
    /**
     * `changed` divided by {@link CHANGED_STEP}. Only processes of earlier releases, which run beside this one during an
     * upgrade, read it: they select changed lobbies by it.
     */
    changed_step: bigint({ mode: 'number' })
      .notNull()
      .generatedAlwaysAs(sql.raw(`changed / ${CHANGED_STEP}`)),
  },
  // A seat changes no indexed column, so the row stays on its page and needs no new index entries. Some of each page is left
  // free for that (the fillfactor, which only a migration can set).
  (table) => [
    index('lobbies_by_age').on(table.namespace_id, table.create_ts),
    index('lobbies_of_game').on(table.game_id, table.create_ts, table.lobby_id),
    index('lobbies_running_by_id').on(table.namespace_id, table.lobby_id).where(sql`stop_ts is null`),
    index('lobbies_not_ready').on(table.create_ts).where(sql`ready_ts is null and stop_ts is null`),
    uniqueIndex('lobbies_code').on(table.namespace_id, table.code).where(sql`stop_ts is null`),
    index('lobbies_of_server').on(table.server_id),
    index('lobbies_stopped').on(table.stop_ts).where(sql`stop_ts is not null`),
    index('lobbies_seats_check').on(table.seats_check_ts).where(sql`stop_ts is null`),
    index('lobbies_idle').on(table.idle_ts).where(sql`idle_ts is not null and stop_ts is null`),
    check(
      'lobbies_seats',
      sql`player_count >= 0 and player_count <= greatest(max_players_normal, max_players_direct, max_players_party)`,
    ),
  ],
);

/** Why a player has no seat any more. */
export const REMOVE_REASONS = [
  'disconnected',
  'seat_expired',
  'timed_out',
  'lobby_stopped',
  'request_ended',
  'kicked',
] as const;
export type RemoveReason = (typeof REMOVE_REASONS)[number];

/** Seats. A player is one visit to one lobby. */
export const players = pgTable(
  'players',
  {
    player_id: uuid().primaryKey(),
    /** No foreign key: to delete a lobby, PostgreSQL would read all players, or need an index of all of them. */
    lobby_id: uuid().notNull(),
    namespace_id: uuid().notNull(),
    /** The client's address. */
    address: text().notNull(),
    /** The player's client, which has a limit of players (`client-limits.ts`). Null for players from before clients had one. */
    client: text(),
    /**
     * The player's number among the seated players of the client, from 1 to the client's limit. Earlier releases set none:
     * their players get a number above all limits. Null for players who left before there were numbers.
     */
    client_number: integer().default(sql`1000000000 + (random() * 1000000000)::integer`),
    create_ts: moment().notNull(),
    /** The moment by which the player must have connected. Null while the lobby is not ready. */
    seat_deadline_ts: moment(),
    connect_ts: moment(),
    remove_ts: moment(),
    remove_reason: text({ enum: REMOVE_REASONS }),
  },
  // A connect changes no indexed column, so the row stays on its page and needs no new index entry. Half of each page is
  // left free for that (the fillfactor, which only a migration can set).
  //
  // PostgreSQL may keep a plan that scans a whole partial index, for example one from when no player was seated. So a
  // statement repeats an index's condition only if it also filters by the index's columns.
  (table) => [
    index('players_seated').on(table.lobby_id).where(sql`remove_ts is null and lobby_id is not null`),
    index('players_who_left')
      .on(table.lobby_id, table.remove_ts)
      .where(sql`remove_ts is not null and lobby_id is not null`),
    // The final guard of the limit (I-M11): two processes that give the same number cannot both commit (docs/decisions/0025).
    uniqueIndex('players_of_client')
      .on(table.namespace_id, table.client, table.client_number)
      .where(sql`remove_ts is null and client_number > 0`),
  ],
);

/** How many of the latest versions of a namespace's list have rows in `lobby_changes`. */
export const CHANGES_KEPT = 1_024;

/**
 * Which lobbies changed with each of the latest versions of a namespace's list. It is a ring: a version takes the row of the
 * one that is {@link CHANGES_KEPT} versions older. Readers of changes find changed lobbies here, because an index of
 * lobbies by their last change would be written with each seat (docs/decisions/0022).
 */
export const lobbyChanges = pgTable(
  'lobby_changes',
  {
    namespace_id: uuid().notNull(),
    /** The remainder of the version divided by {@link CHANGES_KEPT}. */
    slot: integer().notNull(),
    version: bigint({ mode: 'number' }).notNull(),
    /** Empty if the version was bumped without a change of a lobby. */
    lobby_ids: uuid().array().notNull(),
  },
  // A new version of a row stays on its page, half of which is left free (the fillfactor, which only a migration can set).
  (table) => [primaryKey({ columns: [table.namespace_id, table.slot] })],
);

/** How many lobbies of a namespace run, so that its maximum holds on all processes. */
export const lobbyCounts = pgTable(
  'lobby_counts',
  {
    namespace_id: uuid().primaryKey(),
    lobby_count: integer().notNull(),
  },
  () => [check('lobby_counts_not_negative', sql`lobby_count >= 0`)],
);

/**
 * The counts by which earlier releases limit the players of a client. This release does not use them; it keeps the table for
 * older processes that run beside it during an upgrade.
 */
export const clientCounts = pgTable(
  'client_counts',
  {
    namespace_id: uuid().notNull(),
    client: text().notNull(),
    player_count: integer().notNull(),
    player_max: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.client] }),
    // A count may be below zero: it falls when a player leaves who was seated by a process of this release.
    check('client_counts_max', sql`player_count <= player_max`),
  ],
);

/** Finds that wait for their turn. */
export const queuedFinds = pgTable(
  'queued_finds',
  {
    namespace_id: uuid().notNull(),
    /** The id of the find, by which its position is watched. Generated by the client, or else by the service. */
    ticket: uuid().notNull(),
    /** The order of the queue: the lowest is first. */
    place: bigint({ mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    /** The process that has the request. Its finds leave the queue unless it renews `lease_ts` in time. */
    owner: uuid().notNull(),
    /** By the clock of the database, which all processes compare it with. */
    lease_ts: moment().notNull(),
    /** Since when it waits. Processes of releases without the column leave it to the database. */
    enter_ts: moment().notNull().defaultNow(),
    client: text().notNull(),
    seats: integer().notNull(),
    version_id: uuid().notNull(),
    game_modes: text().array().notNull(),
    regions: text().array().notNull(),
    tags: jsonb().$type<Record<string, string>>().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.ticket] }),
    index('queued_finds_in_order').on(table.namespace_id, table.place),
    index('queued_finds_by_lease').on(table.lease_ts),
    index('queued_finds_of_owner').on(table.owner),
  ],
);

export type QueuedFindRow = typeof queuedFinds.$inferSelect;

/** The parts of a waiting find that matter to other finds. */
export type QueuedFind = Pick<
  QueuedFindRow,
  'ticket' | 'place' | 'seats' | 'version_id' | 'game_modes' | 'regions' | 'tags'
>;

export type LobbyRow = Omit<typeof lobbies.$inferSelect, 'changed_step'>;
export type PlayerRow = typeof players.$inferSelect;

/** A pool of a namespace: its lobbies of one version, game mode and region. */
export type NamespacePool = Pick<LobbyRow, 'namespace_id' | 'version_id' | 'game_mode' | 'region'>;

/** Explanations of the outcomes of requests for seats. */
export const receipts = pgTable(
  'receipts',
  {
    ray_id: uuid().primaryKey(),
    namespace_id: uuid().notNull(),
    create_ts: moment().notNull(),
    receipt: jsonb().$type<Record<string, unknown>>().notNull(),
  },
  (table) => [
    index('receipts_of_namespace').on(table.namespace_id, table.create_ts, table.ray_id),
    index('receipts_by_age').on(table.create_ts),
    index('receipts_refused')
      .on(table.namespace_id, table.create_ts, table.ray_id)
      .where(sql`receipt #>> '{outcome,code}' is not null`),
  ],
);
