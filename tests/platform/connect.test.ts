import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { connectDatabase } from '../../src/platform/database/connect.ts';
import { StartError } from '../../src/platform/errors.ts';
import { openTestDatabase } from '../support/database.ts';
import { openProxied } from '../support/proxied.ts';
import { rejectionOf } from '../support/refusal.ts';
import { findFreePort } from '../support/service.ts';

const UNREADABLE =
  'DATABASE_URL cannot be read: write it as postgres://user:password@host:port/database, with %40 for @ and %2F for / in the password.';
const unreachable = (reason: string) =>
  `PostgreSQL cannot be reached at DATABASE_URL (${reason}): start it, or correct DATABASE_URL.`;

describe('whoever starts the service reads one sentence, without the password, when DATABASE_URL', () => {
  const CASES = [
    { what: 'has a slash in its password', url: 'postgres://user:se/cret@127.0.0.1:5432/things', message: UNREADABLE },
    { what: 'has a port that is none', url: 'postgres://user:secret@127.0.0.1:99999/things', message: UNREADABLE },
    { what: 'is encoded wrongly', url: 'postgres://user:secret%zz@127.0.0.1:5432/things', message: UNREADABLE },
    {
      what: 'asks for what the driver does not know',
      url: 'postgres://user:secret@127.0.0.1/things?target_session_attrs=secret',
      message: UNREADABLE,
    },
    {
      what: 'leads to nobody',
      url: `postgres://user:secret@127.0.0.1:${findFreePort()}/things`,
      message: unreachable('ECONNREFUSED'),
    },
  ];
  for (const { what, url, message } of CASES) {
    test(what, async () => {
      const refusal = await rejectionOf(StartError, connectDatabase({ url }, 2));
      expect(refusal.message).toBe(message);
      expect(Bun.inspect(refusal)).not.toMatch(/se\/?cret/);
    });
  }
});

describe('a server that can be used', () => {
  let opened: AsyncDisposableStack;
  let url: string;
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    const { address } = opened.use(await openTestDatabase());
    ({ url } = opened.use(await openProxied(address)));
  });
  afterAll(async () => {
    await opened.disposeAsync();
  });

  test('is connected to', async () => {
    await using database = await connectDatabase({ url }, 2);
    expect([...(await database.queries.execute(sql`select 1 as one`))]).toEqual([{ one: 1 }]);
  });

  test('is refused when it does not have this database', async () => {
    const other = new URL(url);
    other.pathname = '/no_such_database';
    const refusal = await rejectionOf(StartError, connectDatabase({ url: other.href }, 2));
    expect(refusal.message).toBe(unreachable('3D000'));
  });
});
