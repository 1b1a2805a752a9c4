import { beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { makeGame, type TestGame } from '../../support/game.ts';
import { endOf, serversOf, uploadShell } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** More than are started at one time. */
const ENDING = 70;

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

test('ending: servers that take long to end delay no start', async () => {
  const { database } = muster;
  const run = (statement: string) => database.queries.execute(sql.raw(statement));
  const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  const other_game = await makeGame(muster.api, muster.administrator_token);
  const other = serversOf(muster, other_game);
  const other_body = await other.bodyOf(await uploadShell(muster.api, other_game, 'exec sleep 600'));
  const ids: string[] = [];
  for (let index = 0; index < ENDING; index += 1) ids.push((await servers.create(body)).body.server.id);
  for (const id of ids) await servers.started(id);
  // The ends wait for the lock, up to the lock timeout of the database.
  await run(`create function wait_for_lock() returns trigger language plpgsql as $$ begin
    if new.ended_at is not null then perform pg_advisory_xact_lock(7); end if; return new;
  end $$`);
  await run('create trigger wait_for_lock before update on servers for each row execute function wait_for_lock()');
  const release = Promise.withResolvers<void>();
  const holding = database.transact(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(7)`);
    await release.promise;
  });
  await run('update servers set destroyed_at = now(), kill_at = now()');
  await waitFor(async () => {
    const waiting = await run(`select from pg_locks where locktype = 'advisory' and not granted`);
    return waiting.length > 0;
  }, 'a round of ends to wait for the lock');
  await other.started((await other.create(other_body)).body.server.id);
  expect(muster.events.filter(({ event }) => event === 'server_step_failed')).toEqual([]);
  release.resolve();
  await holding;
  for (const id of ids) await endOf(muster, id);
}, 90_000);
