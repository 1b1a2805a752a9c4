import { openDatabase } from '../../src/platform/database/database.ts';
import { loadKey } from '../../src/platform/tokens/keys.ts';
import { createTokens, type Tokens } from '../../src/platform/tokens/tokens.ts';
import type { TestService } from './service.ts';

/** Issues tokens of any kind with a service's own key. */
export async function openServiceTokens({
  database_address,
  clock,
}: Pick<TestService, 'database_address' | 'clock'>): Promise<Tokens> {
  await using database = openDatabase(database_address, 1);
  return await createTokens(await loadKey(database.queries, clock, 'token'), clock);
}
