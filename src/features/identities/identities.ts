import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { insertIdentity, selectAdministrator, selectIdentity } from './store.ts';
import type { IdentityRow } from './tables.ts';

const ACCOUNT_NUMBERS = 10_000;

export type Identities = ReturnType<typeof createIdentities>;

/** Who there is. */
export function createIdentities({ database, clock }: { database: Database; clock: Clock }) {
  return {
    async create(identity: { display_name: string; is_registered: boolean; is_admin: boolean }): Promise<IdentityRow> {
      const row: IdentityRow = {
        ...identity,
        identity_id: crypto.randomUUID(),
        account_number: Math.floor(Math.random() * ACCOUNT_NUMBERS),
        bio: '',
        create_ts: clock.now(),
      };
      await insertIdentity(database.queries, row);
      return row;
    },
    find: (identity_id: string) => selectIdentity(database.queries, identity_id),
    findAdministrator: () => selectAdministrator(database.queries),
  };
}
