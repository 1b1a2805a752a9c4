import { boolean, index, integer, pgTable, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';
import { versions } from '../versions/tables.ts';

/** Environments of a game, each on one of its versions: prod, staging. */
export const namespaces = pgTable(
  'namespaces',
  {
    namespace_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    name_id: text().notNull(),
    display_name: text().notNull(),
    version_id: uuid()
      .notNull()
      .references(() => versions.version_id),
    create_ts: moment().notNull(),
    /** The matchmaker's limits. */
    lobby_count_max: integer().notNull().default(128),
    max_players_per_client: integer().notNull().default(8),
    max_players_per_client_vpn: integer().notNull().default(4),
    max_players_per_client_proxy: integer().notNull().default(2),
    max_players_per_client_tor: integer().notNull().default(2),
    max_players_per_client_hosting: integer().notNull().default(2),
    /** Whether pages on the namespace's domains may call the matchmaker without a token. */
    enable_domain_public_auth: boolean().notNull().default(true),
    /** Whether the site requires a user and password. */
    auth_type: text({ enum: ['none', 'basic'] })
      .notNull()
      .default('none'),
  },
  (table) => [
    unique('namespaces_name_id').on(table.game_id, table.name_id),
    index('namespaces_of_version').on(table.version_id),
  ],
);

/** The history of a namespace's versions. */
export const namespaceVersions = pgTable(
  'namespace_versions',
  {
    deploy_id: uuid().primaryKey(),
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id),
    version_id: uuid()
      .notNull()
      .references(() => versions.version_id),
    deploy_ts: moment().notNull(),
  },
  (table) => [index('namespace_versions_by_time').on(table.namespace_id, table.deploy_ts)],
);

/** Domains of a namespace's site. */
export const namespaceDomains = pgTable(
  'namespace_domains',
  {
    domain: text().primaryKey(),
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id),
    create_ts: moment().notNull(),
  },
  (table) => [index('namespace_domains_by_namespace').on(table.namespace_id)],
);

/** Users who may see a namespace's site if it requires a password. */
export const namespaceAuthUsers = pgTable(
  'namespace_auth_users',
  {
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id),
    user: text().notNull(),
    /** A bcrypt hash. */
    password: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.namespace_id, table.user] })],
);

export type NamespaceRow = typeof namespaces.$inferSelect;
export type NamespaceVersionRow = typeof namespaceVersions.$inferSelect;
export type DomainRow = typeof namespaceDomains.$inferSelect;
