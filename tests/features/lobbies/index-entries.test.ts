import { expect, test } from 'bun:test';
import { setDisconnected } from '../../../src/features/lobbies/players-store.ts';
import { openDatabase, type Tx } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { createBareLobbies, permitBareLobbies, takeOneEach } from '../../support/lobbies/bare-lobbies.ts';
import { countUpdates } from '../../support/updates.ts';

test('lobbies: seats and departures in many of them write almost no index entries', async () => {
  await using own = await openTestDatabase();
  await using database = openDatabase(own.address, 2);
  await permitBareLobbies(database);
  const namespace_id = crypto.randomUUID();
  const lobby_ids = await createBareLobbies(database, { namespace_id, count: 512, seats: 8 });
  // Lobbies that change together are far from each other, as they are among many.
  const groups = [...Map.groupBy(lobby_ids.keys(), (index) => index % 16).values()].map((indexes) =>
    indexes.flatMap((index) => lobby_ids[index] ?? []),
  );
  const counts: { updated: number; noted: number }[] = [];
  const commit = async (work: (tx: Tx) => Promise<unknown>) =>
    counts.push(await database.transact((tx) => countUpdates(tx, 'lobbies', () => work(tx))));
  const players: string[][] = [];
  const seatAll = async () => {
    for (const group of groups) await commit(async (tx) => players.push(await takeOneEach(tx, namespace_id, group)));
  };
  await seatAll();
  // The first seats changed whether the lobbies are idle, which is in an index.
  counts.length = 0;
  await seatAll();
  for (const some of players.slice(0, groups.length)) await commit((tx) => setDisconnected(tx, some, new Date()));
  const sumOf = (key: 'updated' | 'noted') => counts.reduce((sum, count) => sum + count[key], 0);
  expect(sumOf('updated')).toBe(2 * lobby_ids.length);
  // Some write entries because their page is full.
  expect(sumOf('noted')).toBeLessThan(sumOf('updated') / 10);
});
