import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { makeGame } from '../../support/game.ts';
import { openMatchmaker } from '../../support/matchmaker/matchmaker.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

/** Together they have more bytes than a process remembers of configurations. */
const VERSIONS = 20;
const LARGE = {
  scripts: 'x'.repeat(1_024 ** 2),
  matchmaker: { idle_lobbies: { min: 1, max: 2 }, game_modes: { duel: {} } },
};

test('the idle lobbies of versions are remembered also if their configurations are too large for that', async () => {
  await using matchmaker = await openMatchmaker(muster);
  const { database, versions } = matchmaker;
  const { game_id } = await makeGame(muster.api, muster.administrator_token);
  const keys = Array.from({ length: VERSIONS }, () => ({ game_id, version_id: crypto.randomUUID() }));
  for (const { version_id } of keys) {
    await database.queries.execute(sql`
      insert into versions (version_id, game_id, display_name, config, keeps_warm, create_ts)
      values (${version_id}, ${game_id}, ${version_id}, ${JSON.stringify(LARGE)}::jsonb, true, now())`);
  }
  const readAll = () => Promise.all(keys.map((key) => versions.idleLimits(key)));
  const first = await readAll();
  expect([...(first[0]?.get('duel')?.values() ?? [])]).toContainEqual({ min: 1, max: 2 });
  // Once the datacenters are read again, the limits are worked out again.
  await waitFor(async () => {
    const [before, after] = [await readAll(), await readAll()];
    // The same objects: nothing was read again.
    return after.every((limits, index) => limits === before[index]);
  }, 'the limits to be remembered');
  const [{ game_id: foreign_game_id }, [known]] = [await makeGame(muster.api, muster.administrator_token), keys];
  const ofForeignGame = versions.idleLimits({ game_id: foreign_game_id, version_id: known?.version_id ?? '' });
  await expect(ofForeignGame).rejects.toThrow('version');
});
