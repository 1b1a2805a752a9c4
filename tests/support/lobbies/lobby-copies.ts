import { getTableColumns, type SQL, sql } from 'drizzle-orm';
import { lobbies } from '../../../src/features/lobbies/tables.ts';

const COLUMNS = Object.values(getTableColumns(lobbies)).flatMap(({ name, generated }) =>
  generated ? [] : [sql.identifier(name)],
);

/**
 * Returns the statement that writes copies of lobbies into the database: one for each row of `from`, in which the lobby
 * is named `lobby`, with the columns in the jsonb `changes` replaced.
 */
export function copyLobbies(from: SQL, changes: SQL): SQL {
  const columns = sql.join(COLUMNS, sql`, `);
  return sql`
    insert into lobbies (${columns})
    select ${columns} from (select lobby, ${changes} as changes from ${from}) as wanted,
      lateral jsonb_populate_record(wanted.lobby, wanted.changes) as copies`;
}
