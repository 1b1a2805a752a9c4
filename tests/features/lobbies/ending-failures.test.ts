import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { find, makeControlledGame, onlyLobby } from '../../support/game-server.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const MINUTE_MS = 60_000;

const muster = shareService();

test('lobbies loop: a lobby that cannot be ended is reported, and the others end', async () => {
  const [broken, sound] = await Promise.all([1, 2].map(() => makeControlledGame(muster, { is_ready: false })));
  if (!broken || !sound) throw new Error('there are two games');
  // The broken one is older, so it is tried first.
  const finding = [find(muster, broken)];
  const broken_id = await onlyLobby(muster, broken);
  finding.push(find(muster, sound));
  const sound_id = await onlyLobby(muster, sound);
  await using database = openDatabase(muster.database_address, 1);
  const run = (text: string) => database.queries.execute(sql.raw(text));
  await run(`create function refuse_end() returns trigger language plpgsql as
    $$ begin if new.stop_ts is not null and new.lobby_id = '${broken_id}' then raise exception 'refused'; end if; return new; end $$`);
  await run('create trigger refuse_end before update on lobbies for each row execute function refuse_end()');

  muster.clock.advance(5 * MINUTE_MS + 1);
  await waitFor(
    async () => (await muster.inspector.stopReason(sound_id)) === 'not_ready_in_time',
    'the other lobby to end',
  );
  const reported = muster.events.filter((event) => event.event === 'lobby_not_stopped');
  expect(reported.map(({ lobby_id }) => lobby_id)).toContain(broken_id);
  expect(await muster.inspector.stopReason(broken_id)).toBeUndefined();

  await run('drop trigger refuse_end on lobbies');
  await waitFor(async () => (await muster.inspector.stopReason(broken_id)) === 'not_ready_in_time', 'the lobby to end');
  await Promise.all(finding);
});
