import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { countByStatus, selectWindow } from '../../../src/features/servers/rows-store.ts';
import { selectServers } from '../../../src/features/servers/store.ts';
import { countReadRows } from '../../support/database/table-scans.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { copyServer } from '../../support/server-copies.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

/** More than a page has. */
const LARGE_SERVERS = 70;
const LARGE_BYTES = 300_000;
const PAGE_BYTES_MAX = 8 * 1_024 ** 2;
const HISTORY = 3_000;

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

  test('has pages of limited bytes too', async () => {
    const namespace_id = game.staging_id;
    const environment = { LARGE: 'x'.repeat(LARGE_BYTES) };
    // No machine of this service takes them.
    const changes = { namespace_id, environment, datacenter_id: crypto.randomUUID(), node_id: null, started_at: null };
    await copyServer(muster.database.queries, ids[0] ?? '', LARGE_SERVERS, { ...changes, process: null });
    const { path } = serversOf(muster, { ...game, namespace_id });
    const pages: string[][] = [];
    for (let cursor = ''; pages.at(-1)?.length !== 0; cursor = `?cursor=${pages.at(-1)?.at(-1)}`) {
      const { servers: found } = await muster.api.ok('GET', path + cursor, { token: game.cloud_token });
      pages.push(found.map(({ id }: { id: string }) => id));
    }
    const counts = pages.map((page) => page.length);
    expect(Math.max(...counts) * LARGE_BYTES).toBeLessThanOrEqual(PAGE_BYTES_MAX);
    expect(counts.length).toBeGreaterThan(2);
    expect(new Set(pages.flat()).size).toBe(LARGE_SERVERS);
    await muster.database.queries.execute(sql`delete from servers where namespace_id = ${namespace_id}`);
  });

  test('reads no servers that have ended', async () => {
    const { queries } = muster.database;
    const namespace_id = game.staging_id;
    const place = { namespace_id, datacenter_id: crypto.randomUUID() };
    const waits = { ...place, node_id: null, started_at: null, process: null };
    const now = muster.clock.now().toISOString();
    await copyServer(queries, ids[0] ?? '', 3, waits);
    await copyServer(queries, ids[0] ?? '', HISTORY, { ...place, destroyed_at: now, kill_at: now, ended_at: now });
    await queries.execute(sql`analyze servers`);
    const scope = { game_id: game.game_id, namespace_id };
    const window = { status: undefined, order: 'newest', from: 0, count: 50 } as const;
    const before = await countReadRows(queries, 'servers');
    expect(await selectServers(queries, scope, { tags: {}, include_destroyed: false, cursor: undefined })).toHaveLength(
      3,
    );
    expect(await selectWindow(queries, namespace_id, window)).toHaveLength(3);
    expect((await countByStatus(queries, namespace_id)).starting).toBe(3);
    expect((await countReadRows(queries, 'servers')) - before).toBeLessThan(HISTORY / 10);
    await queries.execute(sql`delete from servers where namespace_id = ${namespace_id}`);
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
