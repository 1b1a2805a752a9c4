import { getTableColumns, type SQL, sql } from 'drizzle-orm';
import { lobbies } from '../../src/features/lobbies/tables.ts';

const COLUMNS = Object.values(getTableColumns(lobbies)).flatMap(({ name, generated }) =>
  generated ? [] : [sql.identifier(name)],
);

/**
 * The statement that writes copies of lobbies into the database: of those in `from`, which is named `lobby` there, one for
 * each row, with the columns changed that `changes`, a jsonb, has.
 */
export function copyLobbies(from: SQL, changes: SQL): SQL {
  const columns = sql.join(COLUMNS, sql`, `);
  return sql`
    insert into lobbies (${columns})
    select ${columns} from (select lobby, ${changes} as changes from ${from}) as wanted,
      lateral jsonb_populate_record(wanted.lobby, wanted.changes) as copies`;
}
