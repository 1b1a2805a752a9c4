import type { Database } from '../../../src/platform/database/database.ts';

/** Locks a lobby, as another program may. It is unlocked when the result is disposed of. */
export async function lockLobby(
  { openCopyConnection }: Pick<Database, 'openCopyConnection'>,
  lobby_id: string,
): Promise<AsyncDisposable> {
  const connection = openCopyConnection();
  await connection`begin`;
  await connection`select from lobbies where lobby_id = ${lobby_id} for update`;
  return {
    async [Symbol.asyncDispose]() {
      await connection`rollback`;
      await connection.end();
    },
  };
}
