import { expect, test } from 'bun:test';
import { openTestDatabase } from '../database/database.ts';

// A run of tests for journeys/test-runs.test.ts: the second test times out, with a process that it has spawned.

async function useDatabase(): Promise<void> {
  await using database = await openTestDatabase();
  expect(database.address).toBeDefined();
}

test('before', useDatabase);
test('times out', () => {
  Bun.spawn(['sleep', '60']);
  return new Promise(() => {});
}, 100);
test('after', useDatabase);
