import { beforeAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { sendArchive } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const serverSaying = async (text: string) =>
  new Uint8Array(await packTar([{ name: 'server', content: `#!/bin/sh\necho ${text}\n`, mode: 0o755 }]));

/** Runs work while PostgreSQL refuses to mark a build as complete. */
async function whileCommitsFail(build_id: string, work: () => Promise<void>): Promise<void> {
  const execute = (text: string) => muster.database.queries.execute(sql.raw(text));
  await execute(`create function refuse() returns trigger language plpgsql as
    $$ begin if new.build_id = '${build_id}' and new.complete_ts is not null then raise exception 'refused'; end if; return new; end $$`);
  await execute('create trigger refusal before update on builds for each row execute function refuse()');
  try {
    await work();
  } finally {
    await execute('drop trigger refusal on builds');
    await execute('drop function refuse()');
  }
}

test('builds: after a failed completion and a second upload, the last file runs', async () => {
  const { build_id, send, complete } = await sendArchive(muster, game, await serverSaying('one'));
  await whileCommitsFail(build_id, async () => {
    expect((await complete()).status).toBeGreaterThanOrEqual(500);
  });
  await send(await serverSaying('two'));
  expect(outcomeOf(await complete())).toBe('200');

  const servers = serversOf(muster, game);
  const { body } = await servers.create(await servers.bodyOf(build_id));
  await waitForEndEvent(muster, body.server.id);
  expect(await servers.linesOf(body.server.id)).toEqual(['two']);
  // Nothing of the first file is left.
  expect(readdirSync(join(muster.config.data_directory, 'builds', build_id))).toHaveLength(1);
});
