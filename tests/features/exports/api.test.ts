import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { logRows } from '../../../src/features/exports/exports.ts';
import { selectWithin } from '../../../src/features/lobbies/developers/history-store.ts';
import { createLogReading } from '../../../src/features/servers/logs/log-reading.ts';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { countReadRows } from '../../support/database/table-scans.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { copyLobbies } from '../../support/lobbies/lobby-copies.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;
const COLUMNS =
  'lobby_id,namespace_id,namespace_name,region_id,region_name,tier_name,version_id,version_name,lobby_group_id,lobby_group_name,start_ts,stop_ts,total_uptime_ms,query_uptime_ms';
const FORMULA = '=HYPERLINK("https://elsewhere.example")';

let opened: TestService;
let game: TestGame;
let lobby_id: string;
beforeAll(async () => {
  opened = await openTestService();
  const source = `console.log(${JSON.stringify(FORMULA)});console.log('two, "three"');${READY_SOURCE}`;
  game = await makeRoomGame(opened, { source });
  const body = { game_modes: ['default'] };
  const { lobby } = await opened.api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body });
  lobby_id = lobby.lobby_id;
});
afterAll(() => opened[Symbol.asyncDispose]());

const lobbiesPath = () => `/cloud/games/${game.game_id}/matchmaker/lobbies`;
const exportHistory = (query_start: number, query_end: number, token = game.cloud_token) =>
  opened.api.post(`${lobbiesPath()}/export-history`, token, { query_start, query_end });
const download = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, text: await response.text() };
};

describe('the history of lobbies', () => {
  test('is refused for a window that ends before it starts, for another game, without its signature, or after its expiry', async () => {
    const now = Date.now();
    expect((await exportHistory(now, now - 1)).body.code).toBe('VALIDATION_ERROR');
    const other = await makeGame(opened.api, opened.administrator_token);
    expect((await exportHistory(0, now, other.cloud_token)).body.code).toBe('GAME_NOT_FOUND');
    const { url } = (await exportHistory(0, now)).body;
    for (const altered of [
      url.replace(game.game_id, other.game_id),
      url.replace('lobby-history', 'lobby-logs'),
      url.slice(0, -1),
      url.replace(/&signature=.*/, ''),
    ]) {
      const { status, text } = await download(altered);
      expect({ status, code: JSON.parse(text).code }).toEqual({ status: 403, code: 'LINK_INVALID' });
    }
    await using late = await openTestService();
    const own = await makeGame(late.api, late.administrator_token);
    const path = `/cloud/games/${own.game_id}/matchmaker/lobbies/export-history`;
    const link = (await late.api.post(path, own.cloud_token, { query_start: 0, query_end: 1 })).body.url;
    late.clock.advance(HOUR_MS + 1_000);
    expect((await download(link)).status).toBe(403);
  });

  test('accepts every u64 as the end of its window', async () => {
    const { status, body } = await exportHistory(0, 2 ** 64 - 1);
    expect(status).toBe(200);
    const { text } = await download(body.url);
    expect(text).toContain(lobby_id);
  });

  test('has a line for each lobby of the window, with its time within the window', async () => {
    const before = Date.now() - HOUR_MS;
    const { url } = (await exportHistory(before, Date.now() + HOUR_MS)).body;
    const { headers, text } = await download(url);
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(headers.get('content-disposition')).toContain('attachment');
    const [columns, line = '', ...rest] = text.trimEnd().split('\r\n');
    expect(columns).toBe(COLUMNS);
    expect(rest).toEqual([]);
    const values = Object.fromEntries(line.split(',').map((value, index) => [COLUMNS.split(',')[index], value]));
    expect(values).toMatchObject({
      lobby_id,
      namespace_id: game.namespace_id,
      namespace_name: 'prod',
      region_name: 'local',
      tier_name: 'basic-1d1',
      lobby_group_name: 'default',
      stop_ts: '',
    });
    expect(values.version_name).toStartWith('Version ');
    // It still runs, so it counts up to the end of the window.
    expect(Number(values.total_uptime_ms)).toBeGreaterThan(HOUR_MS / 2);
    expect(values.query_uptime_ms).toBe(values.total_uptime_ms ?? '');
    for (const [start, end] of [
      [0, before],
      [0, 0],
      [Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER],
    ] as const) {
      const answer = await exportHistory(start, end);
      const lines = (await download(answer.body.url)).text.trimEnd().split('\r\n');
      expect(lines).toHaveLength(start === 0 ? 1 : 2);
    }
  });
});

test('exports: a log has one line for each line of the server, and none is a formula', async () => {
  const path = `${lobbiesPath()}/${lobby_id}/logs/export`;
  const text = await waitFor(async () => {
    const { url } = (await opened.api.post(path, game.cloud_token, { stream: 'std_out' })).body;
    const downloaded = await download(url);
    return downloaded.text.includes('three') ? downloaded.text : undefined;
  }, 'the lines in the log');
  const lines = text.trimEnd().split('\r\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toBe('timestamp,line');
  expect(lines[1]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z,"'=HYPERLINK\(""https:\/\/elsewhere.example""\)"$/);
  expect(lines[2]).toEndWith(',"two, ""three"""');
  expect((await opened.api.post(path, game.cloud_token, { stream: 'both' })).body.code).toBe('API_BAD_BODY');
  const nothing = `${lobbiesPath()}/${crypto.randomUUID()}/logs/export`;
  const answer = await opened.api.post(nothing, game.cloud_token, { stream: 'std_out' });
  expect(answer.body.code).toBe('MATCHMAKER_LOBBY_NOT_FOUND');
});

test('exports: the log of a server is text, with a time before each line', async () => {
  const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
  const { servers } = await opened.api.ok('GET', `${environment}/servers`, { token: game.cloud_token });
  const path = `${environment}/servers/${servers[0].id}/logs/export`;
  const text = await waitFor(async () => {
    const { url } = await opened.api.ok('POST', path, { token: game.cloud_token, body: { stream: 'std_out' } });
    const downloaded = await download(url);
    expect(downloaded.headers.get('content-disposition')).toBe('attachment; filename="server-log.txt"');
    return downloaded.text.includes('three') && downloaded.text;
  }, 'the lines in the log');
  const [first, second, end] = text.split('\n');
  expect(first).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z =HYPERLINK\("https:\/\/elsewhere.example"\)$/);
  expect(second).toEndWith('Z two, "three"');
  expect(end).toBe('');
  const nothing = `${environment}/servers/${crypto.randomUUID()}/logs/export`;
  const answer = await opened.api.post(nothing, game.cloud_token, { stream: 'std_out' });
  expect(answer.body.code).toBe('SERVERS_SERVER_NOT_FOUND');
});

test('exports: a log ends where it ended when the download began, also if the server goes on printing', async () => {
  await using database = openDatabase(opened.database_address, 1);
  const logs = createLogs({ database, clock: opened.clock });
  const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
  const { servers } = await opened.api.ok('GET', `${environment}/servers`, { token: game.cloud_token });
  const name = { server_id: servers[0].id, stream: 'std_err' } as const;
  await logs.addLine(name, 'before');
  const pages: unknown[][] = [];
  for await (const rows of logRows(createLogReading({ database, logs }), name)) {
    pages.push(rows.map(([, line]) => line));
    if (pages.length === 3) break;
    await logs.addLine(name, 'after');
  }
  expect(pages).toEqual([['before']]);
});

test('exports: the history before the lobbies of a window is not read', async () => {
  await using database = openDatabase(opened.database_address, 1);
  const { queries } = database;
  const copies = 3_000;
  const long_ago = new Date(Date.now() - 1_000 * HOUR_MS).toISOString();
  const from = sql`lobbies as lobby cross join generate_series(1, ${copies}::int) where lobby_id = ${lobby_id}`;
  const changes = sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null, 'player_count', 0,
    'create_ts', ${long_ago}::text, 'stop_ts', ${long_ago}::text)`;
  await queries.execute(copyLobbies(from, changes));
  await queries.execute(sql`analyze lobbies`);
  const readPages = async (start: Date) => {
    const window = { start, end: new Date(Date.now() + HOUR_MS) };
    const pages = await Array.fromAsync(selectWithin(queries, game.game_id, window));
    return pages.map((page) => page.length);
  };
  const before = await countReadRows(queries, 'lobbies');
  expect(await readPages(new Date(Date.now() - HOUR_MS))).toEqual([1]);
  expect((await countReadRows(queries, 'lobbies')) - before).toBeLessThan(copies / 10);
  expect(await readPages(new Date(0))).toEqual([1_000, 1_000, 1_000, 1]);
  expect(await readPages(new Date(Date.now() + HOUR_MS))).toEqual([1]);
});
