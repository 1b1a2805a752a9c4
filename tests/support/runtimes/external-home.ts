import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { openExternalDatabase } from '../database/database.ts';
import { type Home, makeHome } from '../program.ts';

/** The home of a service, and its database, which outlives the service. */
export interface ExternalHome extends AsyncDisposable {
  home: Home;
  database: Database;
}

/** Makes the home of a service without limits and demo, on an external database, and connects to that database. */
export async function openExternalHome(settings: Record<string, string> = {}): Promise<ExternalHome> {
  await using opened = new AsyncDisposableStack();
  const { url } = opened.use(await openExternalDatabase());
  const own_settings = { DATABASE_URL: url, MUSTER_DEMO: 'off', MUSTER_LIMITS: 'off', ...settings };
  const home = opened.use(await makeHome(own_settings));
  const database = opened.use(openDatabase({ url }, 1));
  const everything = opened.move();
  return { home, database, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}
