import { beforeAll, expect, test } from 'bun:test';
import { connect, QUICK } from '../../support/client.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

interface Row {
  server_id: string;
  status: string;
  exit_code?: number;
}

const muster = shareService();
let game: TestGame;
let path: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/servers`;
});

test("rows of servers: are refused for another tenant's namespace, and for a status that does not exist", async () => {
  const other = await makeGame(muster.api, muster.administrator_token);
  expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
  const mixed = `/cloud/games/${other.game_id}/namespaces/${game.namespace_id}/servers`;
  expect(outcomeOf(await muster.api.get(mixed, other.cloud_token))).toBe('404 GAME_ENVIRONMENT_NOT_FOUND');
  expect(outcomeOf(await muster.api.get(`${path}?status=lost`, game.cloud_token))).toBe('400 API_BAD_QUERY_PARAMETER');
});

test('rows of servers: a client has what the GET answers, from the start of a server to its end', async () => {
  const servers = serversOf(muster, game);
  const client = connect({ url: muster.config.public_url, token: game.cloud_token, timing: QUICK });
  const windows = ['', '?order=oldest&count=1', '?status=ended', '?count=0'].map((query) => {
    const kept = { path: `${path}${query}`, text: '' };
    client.watchRows<{ watch: { index: string }; row_id: string; rows?: Row[] }>(kept.path, (body) => {
      kept.text = textOf(body);
    });
    return kept;
  });
  const untilEqual = async (what: string) => {
    for (const kept of windows) {
      await waitFor(
        async () => textOf(await muster.api.ok('GET', kept.path, { token: game.cloud_token })) === kept.text,
        `the rows of ${kept.path} after ${what}`,
      );
    }
  };
  const read = async (query: string): Promise<Row[]> =>
    (await muster.api.ok('GET', `${path}${query}`, { token: game.cloud_token })).rows;
  await untilEqual('nothing');
  const first = await servers.run('sleep 600');
  const second = await servers.run('exit 3');
  await servers.waitForStart(first);
  await waitForEndEvent(muster, second);
  await untilEqual('one start and one end');
  expect(await read('')).toMatchObject([{ server_id: first, status: 'running' }]);
  expect(await read('?status=ended')).toMatchObject([{ server_id: second, status: 'ended', exit_code: 3 }]);
  await servers.destroy(first);
  await waitForEndEvent(muster, first);
  await untilEqual('two ends');
  expect(await read('')).toEqual([]);
  const ended = await read('?status=ended&order=oldest');
  expect(ended.map(({ server_id }) => server_id)).toEqual([first, second]);
  client.close();
});

/** Returns the rows and the summary of a body as a text. */
function textOf(body: object): string {
  const { rows, summary } = body as { rows: Row[]; summary: object };
  return JSON.stringify({ rows, summary });
}
