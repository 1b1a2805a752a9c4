import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { find, makeControlledGame, waitForFirstLobby } from '../../support/game-server.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const MINUTE_MS = 60_000;
const BROKEN = 6;

const muster = shareService();

test('lobbies loop: lobbies that cannot be ended are reported, and the others end', async () => {
  const options = { is_ready: false, game_modes: { default: { max_players: 1 } } };
  const [broken, other] = await Promise.all([1, 2].map(() => makeControlledGame(muster, options)));
  if (!broken || !other) throw new Error('there are two games');
  // The broken ones are older, so they are tried first.
  const finding = Array.from({ length: BROKEN }, () => find(muster, broken));
  const broken_ids = await waitFor(async () => {
    const lobbies = await muster.inspector.lobbiesOf(broken.namespace_id);
    return lobbies.length === BROKEN && lobbies.map(({ lobby_id }) => lobby_id);
  }, 'the lobbies that cannot be ended');
  finding.push(find(muster, other));
  const other_id = await waitForFirstLobby(muster, other);
  await using database = openDatabase(muster.database_address, 1);
  const run = (text: string) => database.queries.execute(sql.raw(text));
  await run(`create function refuse_end() returns trigger language plpgsql as
    $$ begin if new.stop_ts is not null and new.namespace_id = '${broken.namespace_id}' then raise exception 'refused'; end if; return new; end $$`);
  await run('create trigger refuse_end before update on lobbies for each row execute function refuse_end()');

  muster.clock.advance(5 * MINUTE_MS + 1);
  await waitFor(
    async () => (await muster.inspector.stopReason(other_id)) === 'not_ready_in_time',
    'the other lobby to end',
  );
  const reported = muster.events.filter((event) => event.event === 'lobby_not_stopped');
  expect(new Set(reported.map(({ lobby_id }) => lobby_id))).toEqual(new Set(broken_ids));
  for (const broken_id of broken_ids) expect(await muster.inspector.stopReason(broken_id)).toBeUndefined();

  await run('drop trigger refuse_end on lobbies');
  for (const broken_id of broken_ids) {
    await waitFor(
      async () => (await muster.inspector.stopReason(broken_id)) === 'not_ready_in_time',
      'the broken lobbies to end',
    );
  }
  await Promise.all(finding);
});

test('lobbies loop: a lobby that another program has locked is reported, and the others end', async () => {
  const [locked, other] = await Promise.all([1, 2].map(() => makeControlledGame(muster, { is_ready: false })));
  if (!locked || !other) throw new Error('there are two games');
  // The locked one is older, so it is tried first.
  const finding = [find(muster, locked)];
  const locked_id = await waitForFirstLobby(muster, locked);
  finding.push(find(muster, other));
  const other_id = await waitForFirstLobby(muster, other);
  const [has_locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const lock = muster.database.transact(async (tx) => {
    await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);
    await tx.execute(sql`select from lobbies where lobby_id = ${locked_id} for update`);
    has_locked.resolve();
    await released.promise;
  });
  // It may be held longer than a transaction of the service may take.
  const unlocked = lock.catch(() => {});
  await has_locked.promise;

  muster.clock.advance(5 * MINUTE_MS + 1);
  const hasEnded = async (lobby_id: string) => (await muster.inspector.stopReason(lobby_id)) === 'not_ready_in_time';
  await waitFor(() => hasEnded(other_id), 'the other lobby to end');
  const isReported = () =>
    muster.events.some((event) => event.event === 'lobby_not_stopped' && event.lobby_id === locked_id);
  await waitFor(isReported, 'the locked lobby to be reported');

  released.resolve();
  await unlocked;
  await waitFor(() => hasEnded(locked_id), 'the locked lobby to end');
  await Promise.all(finding);
});
