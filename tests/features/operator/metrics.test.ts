import { expect, test } from 'bun:test';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { VERSION } from '../../../src/platform/version.ts';
import { join as joinLobby, makeControlledGame } from '../../support/game-server.ts';
import { makeFullGame, queueUp } from '../../support/lobbies/queue.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();

/** Scrapes the metrics as Prometheus does. Returns the text and the value of each series. */
async function scrape() {
  const headers = { authorization: `Bearer ${muster.administrator_token}`, accept: 'application/openmetrics-text' };
  const answer = await fetch(`${muster.config.public_url}/metrics`, { headers });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  ]);
  const text = await answer.text();
  const lines = text.trimEnd().split('\n');
  const series = new Map<string, number>();
  for (const line of lines) {
    const [, name, value] = /^([a-z_]+(?:\{[a-z]+="[^"\\\n]*"\})?) (\d\S*)$/.exec(line) ?? [];
    if (name !== undefined) series.set(name, Number(value));
    else expect(line).toMatch(/^# (HELP|TYPE|EOF)/);
  }
  expect(lines.at(-1)).toBe('# EOF');
  return { text, series };
}

/** Series that are missing while what they count cannot be read. */
const READ_SERIES = ['muster_lobbies', 'muster_queued_finds', 'muster_database_connections'];

/** Scrapes until nothing is missing. */
const scrapeAll = () =>
  waitFor(async () => {
    const scraped = await scrape();
    return READ_SERIES.every((name) => scraped.series.has(name)) && scraped;
  }, 'all series');

test('metrics: a wrong token gets none', async () => {
  expect(outcomeOf(await muster.api.get('/metrics', 'not-a-token'))).toStartWith('401 ');
  expect(outcomeOf(await muster.api.get('/metrics', `${muster.administrator_token}x`))).toStartWith('401 ');
});

test('metrics: the token of their file reads them, and nothing else', async () => {
  const file = join(muster.config.data_directory, 'metrics-token');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const token = (await Bun.file(file).text()).trim();
  expect(outcomeOf(await muster.api.get('/metrics', token))).toBe('200');
  for (const path of ['/cloud/service', '/cloud/service/log', '/cloud/games', '/matchmaker/lobbies/list']) {
    expect([path, outcomeOf(await muster.api.get(path, token))]).toEqual([path, '401 CLAIMS_MISSING_ENTITLEMENT']);
  }
});

test('metrics: they have what the process does now, and what it has counted since its start', async () => {
  const before = (await scrape()).series;
  const game = await makeFullGame(muster);
  const waiter = await queueUp(muster, game);
  // Less than the lease of a waiting find.
  muster.clock.advance(5_000);
  expect(outcomeOf(await joinLobby(muster, game, crypto.randomUUID()))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  const { series } = await scrape();
  const risen = (name: string) => (series.get(name) ?? 0) - (before.get(name) ?? 0);
  expect(series.get(`muster_build_info{version="${VERSION}"}`)).toBe(1);
  expect(['muster_lobbies', 'muster_players', 'muster_servers{state="running"}'].map(risen)).toEqual([1, 2, 1]);
  expect(risen('muster_seated_total{kind="find"}')).toBe(2);
  expect(risen('muster_refused_total{code="MATCHMAKER_LOBBY_NOT_FOUND"}')).toBe(1);
  expect(series.get('muster_queued_finds')).toBe(1);
  expect(series.get('muster_queue_longest_wait_seconds')).toBeWithin(5, 600);
  expect(risen('muster_requests_total{status="200"}')).toBeGreaterThan(2);
  expect(risen('muster_requests_total{status="404"}')).toBe(1);
  expect(series.get('muster_limit_max{limit="servers"}')).toBe(muster.config.servers.servers_max);
  expect(series.get('muster_loop_failures{loop="queue"}')).toBe(0);
  expect(series.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
  expect(series.get('process_cpu_seconds_total')).toBeGreaterThan(0);
  await waitFor(async () => (await scrape()).series.has('muster_database_connections'), 'the first sample');
  waiter.abort();
  const left = 'muster_refused_total{code="API_CLIENT_GONE"}';
  await waitFor(async () => (await scrape()).series.get(left) === 1, 'the find to be counted');
});

test('metrics: without the counts of what runs and waits, the others are there', async () => {
  const { queries } = muster.database;
  const counted = ['muster_lobbies', 'muster_queued_finds'];
  const countedIn = ({ series }: Awaited<ReturnType<typeof scrape>>) => counted.filter((name) => series.has(name));
  expect(countedIn(await scrape())).toEqual(counted);
  await queries.execute(sql`alter table lobbies rename to lobbies_away`);
  await queries.execute(sql`alter table queued_finds rename to finds_away`);
  try {
    const without = await scrape();
    expect(countedIn(without)).toEqual([]);
    expect(without.text).not.toContain('muster_players');
    expect(without.series.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
  } finally {
    await queries.execute(sql`alter table finds_away rename to queued_finds`);
    await queries.execute(sql`alter table lobbies_away rename to lobbies`);
  }
});

test('metrics: nothing that tenants name is in them, and more tenants make no more series', async () => {
  const hostile = 'x"} 1\\nmuster_lobbies 666 #';
  const before = await scrapeAll();
  for (let number = 0; number < 3; number += 1) {
    const game = await makeControlledGame(muster);
    await muster.api.put('/not/a/route/muster_lobbies', game.public_token, {});
    await muster.api.ok('POST', `/cloud/games/${game.game_id}/namespaces`, {
      token: game.cloud_token,
      body: { name_id: `hostile-${number}`, display_name: hostile, version_id: game.version_id },
    });
  }
  const { text, series } = await scrapeAll();
  expect(text).not.toContain('hostile');
  expect(text).not.toContain('muster_lobbies 666');
  // Series of statuses that the process had not answered before are new.
  const namesIn = (of: typeof series) => [...of.keys()].filter((name) => !name.startsWith('muster_requests_total'));
  expect(namesIn(series)).toEqual(namesIn(before.series));
  const statuses = [...series.keys()].flatMap((name) => /^muster_requests_total(.*)/.exec(name)?.[1] ?? []);
  for (const labels of statuses) expect(labels).toMatch(/^\{status="[1-5]\d\d"\}$/);
});
