import { expect, test } from 'bun:test';
import { createListing } from '../../../src/features/lobbies/listing.ts';
import { selectCounted } from '../../../src/features/lobbies/listing-store.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { openMatchmaker } from '../../support/matchmaker/matchmaker.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();

test('list: clients at all positions share a read of the lobbies, which has no states unless they are wanted', async () => {
  const game = await makeControlledGame(muster);
  const { lobby_id } = await seatOf(find(muster, game));
  const game_server = await connectGameServer(muster, game, lobby_id);
  await game_server.setState({ map: 'ice' });
  await using matchmaker = await openMatchmaker(muster);
  let reads = 0;
  const namespaces = {
    ...matchmaker.namespaces,
    find(namespace_id: string) {
      reads += 1;
      return matchmaker.namespaces.find(namespace_id);
    },
  };
  const { list } = createListing({ ...matchmaker, namespaces });
  const readAtAll = (include_state: boolean) =>
    Promise.all(
      [undefined, { latitude: 0, longitude: 0 }, { latitude: 50, longitude: 8 }].map((coordinates) =>
        list.read({ namespace_id: game.namespace_id, include_state, coordinates }),
      ),
    );

  for (const { lobbies } of await readAtAll(false)) {
    expect(lobbies).toMatchObject([{ lobby_id }]);
    expect(lobbies[0]).not.toHaveProperty('state');
  }
  expect(reads).toBe(1);
  for (const { lobbies } of await readAtAll(true)) expect(lobbies).toMatchObject([{ lobby_id, state: { map: 'ice' } }]);
  expect(reads).toBe(2);

  const [row] = await selectCounted(matchmaker.database.queries, game.namespace_id);
  expect(row).toMatchObject({ lobby_id });
  expect(row).not.toHaveProperty('state');
});
