import { expect, test } from 'bun:test';
import { openExternalDatabase } from '../../support/database/database.ts';
import { makeHome } from '../../support/program.ts';

test('the log of the service has the start of its program, whatever is written to stderr', async () => {
  await using database = await openExternalDatabase();
  await using home = await makeHome({ MUSTER_DEMO: 'off', MUSTER_LOG: 'error', DATABASE_URL: database.url });
  const { api, administrator_token, url, output } = await home.start();
  const { events } = await api.ok('GET', '/cloud/service/log', { token: administrator_token });
  expect(events).toContainEqual({
    number: expect.any(Number),
    ts: expect.any(String),
    level: 'info',
    event: 'service_started',
    details: { version: expect.any(String), url, started_in_ms: expect.any(Number) },
  });
  expect(output()).not.toContain('service_started');
}, 300_000);
