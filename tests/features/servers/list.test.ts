import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
/** The ids of the servers, oldest first. */
const ids: string[] = [];
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
  const body = await servers.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  const TAGS = [{}, { mode: 'a' }, { mode: 'a', map: 'x' }, { mode: 'b', '%': "' or 1=1 --" }];
  for (const tags of TAGS) {
    const { server } = (await servers.create({ ...body, tags })).body;
    await servers.waitForStart(server.id);
    ids.push(server.id);
    muster.clock.advance(1_000);
  }
}, 300_000);

/** Returns the servers of an answer, as positions among those that were created. */
async function list(query: Record<string, string> = {}): Promise<number[]> {
  const path = `${servers.path}?${new URLSearchParams(query)}`;
  const { servers: found } = await muster.api.ok('GET', path, { token: game.cloud_token });
  return found.map(({ id }: { id: string }) => ids.indexOf(id));
}

describe('the list of servers', () => {
  const REFUSALS = [
    ['tags_json', '{'],
    ['tags_json', '["mode"]'],
    ['tags_json', 'null'],
    ['tags_json', '{"mode":1}'],
    ['tags_json', '{"mode":null}'],
    ['tags_json', String.raw`{"mode":"\u0000"}`],
    ['tags_json', String.raw`{"\ud800":"a"}`],
    ['include_destroyed', 'perhaps'],
    ['cursor', 'first'],
  ] as const;
  test.each(REFUSALS)('is refused with a %s of %s', async (parameter, value) => {
    const answer = await muster.api.get(
      `${servers.path}?${new URLSearchParams({ [parameter]: value })}`,
      game.cloud_token,
    );
    expect(outcomeOf(answer)).toBe('400 API_BAD_QUERY_PARAMETER');
    expect(answer.body.message).toStartWith(`The query parameter "${parameter}" is invalid: `);
  });

  test('has the newest first', async () => {
    expect(await list()).toEqual([3, 2, 1, 0]);
    const { servers: found } = await muster.api.ok('GET', servers.path, { token: game.cloud_token });
    expect(found[0]).toEqual(await servers.get(ids[3] ?? ''));
  });

  const TAGGED: [object, number[]][] = [
    [{}, [3, 2, 1, 0]],
    [{ mode: 'a' }, [2, 1]],
    [{ map: 'x', mode: 'a' }, [2]],
    [{ mode: 'b', '%': "' or 1=1 --" }, [3]],
    [{ mode: 'c' }, []],
    [{ mode: 'A' }, []],
    [{ '': 'a' }, []],
    [{ constructor: 'a' }, []],
  ];
  test.each(TAGGED)('can be filtered by tags, all of %j', async (tags, found) => {
    expect(await list({ tags_json: JSON.stringify(tags) })).toEqual(found);
  });

  test('has pages, each after the last server of the one before', async () => {
    expect(await list({ cursor: ids[2] ?? '' })).toEqual([1, 0]);
    expect(await list({ cursor: ids[0] ?? '' })).toEqual([]);
    expect(await list({ cursor: ids[3] ?? '', tags_json: '{"mode":"a"}' })).toEqual([2, 1]);
    expect(await list({ cursor: crypto.randomUUID() })).toEqual([]);
  });

  test('includes ended servers only on request', async () => {
    const ended_id = ids[1] ?? '';
    await servers.destroy(ended_id, '?override_kill_timeout=0');
    expect(await list()).toEqual([3, 2, 0]);
    expect(await list({ include_destroyed: 'false' })).toEqual([3, 2, 0]);
    expect(await list({ include_destroyed: 'true' })).toEqual([3, 2, 1, 0]);
    await waitForEndEvent(muster, ended_id);
    expect(await list({ include_destroyed: 'true', tags_json: '{"mode":"a"}' })).toEqual([2, 1]);
    // The id of an ended server is still a valid cursor.
    expect(await list({ cursor: ended_id })).toEqual([0]);
  });

  test('has no servers of other games or environments, and no cursor of theirs is valid', async () => {
    const other = await makeGame(muster.api, muster.administrator_token);
    for (const place of [other, { ...game, namespace_id: game.staging_id }]) {
      const { path } = serversOf(muster, place);
      for (const query of ['', '?include_destroyed=true', `?cursor=${ids[3]}`]) {
        const { servers: found } = await muster.api.ok('GET', path + query, { token: place.cloud_token });
        expect(found).toEqual([]);
      }
    }
    const answer = await muster.api.get(servers.path, other.cloud_token);
    expect(outcomeOf(answer)).toBe('404 GAME_NOT_FOUND');
  });
});
