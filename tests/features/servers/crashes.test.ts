import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
const MOMENT = expect.stringMatching(/^\d{4}-.*Z$/);

describe('crashes of servers', () => {
  let game: TestGame;
  let servers: ReturnType<typeof serversOf>;
  let path: string;
  beforeAll(async () => {
    game = await makeGame(muster.api, muster.administrator_token);
    servers = serversOf(muster, game);
    path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/crashes`;
  });
  const read = async () => (await muster.api.ok('GET', path, { token: game.cloud_token })).crashes;

  test("are refused for another tenant's namespace", async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
    const mixed = `/cloud/games/${other.game_id}/namespaces/${game.namespace_id}/crashes`;
    expect(outcomeOf(await muster.api.get(mixed, other.cloud_token))).toBe('404 GAME_ENVIRONMENT_NOT_FOUND');
  });

  test('are counted by the way in which servers ended, in words, without ends that are no crashes, and without old ones', async () => {
    const run = async (script: string) => {
      const server_id = await servers.run(script);
      await waitForEndEvent(muster, server_id);
      return server_id;
    };
    await run('exit 0');
    const requested = await servers.run('exec sleep 1000');
    await servers.destroy(requested, '?override_kill_timeout=0');
    await waitForEndEvent(muster, requested);
    expect(await read()).toEqual([]);
    const first = await run('exit 3');
    const second = await run('exit 3');
    const third = await run('kill -SEGV $$');
    const by_code = { summary: 'The server ended with exit code 3.', exit_code: 3, last_end_ts: MOMENT };
    const by_signal = {
      summary: 'The server was ended by the signal SIGSEGV (a segmentation fault).',
      exit_signal: 'SIGSEGV',
      count: 1,
      last_server_id: third,
      last_end_ts: MOMENT,
    };
    expect(await read()).toEqual([by_signal, { ...by_code, count: 2, last_server_id: second }]);
    const age = (server_id: string) =>
      muster.database.queries.execute(sql`
        update servers set ended_at = ended_at - interval '61 minutes' where server_id = ${server_id}`);
    await age(second);
    await age(third);
    expect(await read()).toEqual([{ ...by_code, count: 1, last_server_id: first }]);
  });
});
