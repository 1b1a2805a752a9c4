import { beforeAll, describe, expect, test } from 'bun:test';
import { appendFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { findLines } from '../../../src/features/servers/logs/log-lines.ts';
import { createLogReading } from '../../../src/features/servers/logs/log-reading.ts';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { removeEnded } from '../../../src/features/servers/retention.ts';
import { signalProcess } from '../../../src/platform/system/processes.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { shareServerLogs, textsOf } from '../../support/server-logs.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';
import { openSocket } from '../../support/watch/socket.ts';

const muster = shareService({ MUSTER_WATCH_HOLD_MS: '1000' });
const { makeLog } = shareServerLogs(muster);
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

/** Opens a log, and what a test needs to write it and to read it. */
async function openLog() {
  const { name, file, read } = await makeLog();
  const logs = createLogs({ database: muster.database, clock: muster.clock });
  const reading = createLogReading({ database: muster.database, logs });
  return {
    name,
    async write(lines: string[]) {
      appendFileSync(file, lines.map((line) => `${line}\n`).join(''));
      while ((await logs.collect(name, read, false)).has_more);
    },
    /** Reads one page after the other until nothing follows. */
    async readAll(query: object, number?: number) {
      const texts: string[] = [];
      const pages: number[] = [];
      const key = { ...name, ...query };
      for (let next = number; ; ) {
        const page =
          next === undefined ? await (reading.first ?? reading.last).call(reading, key) : await reading.from(key, next);
        texts.push(...textsOf(page.content));
        pages.push(page.content.length);
        if (page.next === next) return { texts, pages, next };
        next = page.next;
      }
    },
  };
}
const searchFor = (text: string, is_case_sensitive = false) => ({ search: { text, is_case_sensitive } });

describe('lines that contain a text', () => {
  const CASES = [
    ['one of three', 'a\nneedle\nb\n', 'needle', false, [1]],
    ['twice in one line', 'x x\ny\nx\n', 'x', false, [0, 2]],
    ['in another case', 'Needle\nNEEDLE\n', 'nEEdle', false, [0, 1]],
    ['only in this case', 'Needle\nneedle\n', 'needle', true, [1]],
    ['of another alphabet', 'ЁЖ\nёж\n', 'ёж', false, [0, 1]],
    ['beside bytes that are no text', '\xff\xfe\nok\n', 'ok', false, [1]],
    ['not across two lines', 'nee\ndle\n', 'needle', false, []],
    ['patterns have no meaning', 'a.c\nabc\n(a+)+$\n', 'a.c', false, [0]],
    ['at the very end', '\n\nz\n', 'z', false, [2]],
    ['in a letter whose lower case is longer', 'İstanbul\nx\nend\n', 'end', false, [2]],
  ] as const;
  test.each(CASES)('%s', (_, content, text, is_case_sensitive, places) => {
    const bytes = content.includes('\xff') ? Buffer.from(content, 'latin1') : Buffer.from(content);
    expect([...findLines(bytes, text, is_case_sensitive).keys()]).toEqual([...places]);
  });

  test('are the original bytes', () => {
    expect([...findLines(Buffer.from('a\nİ NEEDLE\n'), 'needle', false).values()].map(String)).toEqual(['İ NEEDLE']);
  });
});

describe('search in a log:', () => {
  const NUMBERED = Array.from({ length: 2_000 }, (_, index) => `${index} ${index % 2 === 0 ? 'Even' : 'odd'}`);
  const EVEN = NUMBERED.filter((line) => line.endsWith('Even'));

  test('a reader from the beginning gets each matching line once, in order, in pages', async () => {
    const log = await openLog();
    for (let from = 0; from < NUMBERED.length; from += 100) await log.write(NUMBERED.slice(from, from + 100));
    const { texts, pages } = await log.readAll(searchFor('even'), 0);
    expect(texts).toEqual(EVEN);
    expect(Math.max(...pages)).toBe(256);
    expect((await log.readAll(searchFor('even', true), 0)).texts).toEqual([]);
  });

  test('without an index it finds the last 256 lines, and goes on with later ones', async () => {
    const log = await openLog();
    await log.write(NUMBERED);
    const { texts, next } = await log.readAll(searchFor('EVEN'));
    expect(texts).toEqual(EVEN.slice(-256));
    await log.write(['odd', 'even more']);
    expect((await log.readAll(searchFor('EVEN'), next)).texts).toEqual(['even more']);
  });

  test('a follower without matches gets no new index for a few lines, and one for many', async () => {
    const log = await openLog();
    await log.write(['needle']);
    const { next } = await log.readAll(searchFor('needle'));
    await log.write(['hay']);
    expect((await log.readAll(searchFor('needle'), next)).next).toBe(next);
    for (let round = 0; round < 3; round += 1) await log.write(Array(100).fill('hay'.repeat(500)));
    expect((await log.readAll(searchFor('needle'), next)).next).toBe(302);
  });

  test('a search reads a log of very many chunks to its end', async () => {
    const log = await openLog();
    await log.write(['needle']);
    await muster.database.queries.execute(sql`
      insert into server_log_chunks (server_id, stream, first_line, line_count, ts, total_bytes, content)
      select server_id, stream, number, 1, ts, total_bytes, E'hay\\n'::bytea
      from server_log_chunks, generate_series(1, 20000) as number
      where server_id = ${log.name.server_id} and first_line = 0`);
    expect(await log.readAll(searchFor('needle'), 0)).toMatchObject({ texts: ['needle'], next: 20_001 });
  });
});

describe('a log since a moment:', () => {
  /** Writes three lines, a minute apart. Returns the moment before each. */
  async function writeThree() {
    const log = await openLog();
    const moments: number[] = [];
    for (const line of ['one', 'two', 'three']) {
      moments.push(muster.clock.now().getTime() - 1_000);
      await log.write([line]);
      muster.clock.advance(60_000);
    }
    return { log, moments };
  }

  test('has the lines that were written then or later', async () => {
    const { log, moments } = await writeThree();
    const textsSince = async (start_ms: number) => (await log.readAll({ start_ms })).texts;
    expect(await textsSince(0)).toEqual(['one', 'two', 'three']);
    expect(await textsSince(moments[1] ?? 0)).toEqual(['two', 'three']);
    expect(await textsSince(moments[2] ?? 0)).toEqual(['three']);
    expect(await textsSince(muster.clock.now().getTime())).toEqual([]);
    expect((await log.readAll({ start_ms: moments[1], ...searchFor('t') })).texts).toEqual(['two', 'three']);
    expect((await log.readAll({ start_ms: moments[1], ...searchFor('o') })).texts).toEqual(['two']);
  });

  test('goes on with later lines, from any index', async () => {
    const { log, moments } = await writeThree();
    const query = { start_ms: moments[1] };
    const { next } = await log.readAll(query);
    await log.write(['four']);
    expect((await log.readAll(query, next)).texts).toEqual(['four']);
  });
});

describe('the API of logs:', () => {
  const REFUSALS = [
    ['query_start_ts', 'yesterday'],
    ['search_text', ''],
    ['search_text', 'a\nb'],
    ['search_text', 'x'.repeat(257)],
    ['search_case_sensitive', 'maybe'],
  ] as const;
  test.each(REFUSALS)('refuses a %s of %j', async (parameter, value) => {
    const query = new URLSearchParams({ stream: 'std_out', [parameter]: value });
    const answer = await muster.api.get(`${servers.path}/${crypto.randomUUID()}/logs?${query}`, game.cloud_token);
    expect(outcomeOf(answer)).toStartWith('400 API_BAD_QUERY_PARAMETER');
  });

  test('a search text and a start time apply alike to a GET, a poll and a socket', async () => {
    const server_id = await servers.run(
      `trap 'echo "ERROR: three"' USR1; echo "Error: one"; echo fine; echo "error: two"; while :; do sleep 0.1; done`,
    );
    // The last is written after the others have got their times.
    await servers.waitForLines(server_id, 3);
    for (const pid of findProcessesOf(server_id)) signalProcess(pid, 'SIGUSR1');
    await servers.waitForLines(server_id, 4);
    const query = new URLSearchParams({ stream: 'std_out', query_start_ts: '0', search_text: 'error:' });
    const path = `${servers.path}/${server_id}/log-lines?${query}`;
    const found = (await muster.api.ok('GET', path, { token: game.cloud_token })).lines;
    expect(found.map(({ text }: { text: string }) => text)).toEqual(['Error: one', 'error: two', 'ERROR: three']);
    const times = found.map(({ ts }: { ts: string }) => Date.parse(ts));
    expect(times[2]).toBeGreaterThan(times[1]);
    using socket = openSocket(muster.config.public_url, { token: game.cloud_token });
    const body = await socket.body(await socket.subscribe('a', path));
    expect(body.lines).toEqual(found);
    const since = new URLSearchParams({ stream: 'std_out', query_start_ts: found[2].ts });
    const later = `${servers.path}/${server_id}/log-lines?${since}`;
    const begun = await muster.api.ok('GET', later, { token: game.cloud_token });
    expect(begun.lines).toEqual([found[2]]);
    // Nothing follows: the poll answers after its hold time, with the same index.
    const polled = await muster.api.ok('GET', `${later}&watch_index=${begun.watch.index}`, { token: game.cloud_token });
    expect(polled).toEqual({ lines: [], watch: begun.watch });
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });
});

describe('a search page by page:', () => {
  test('goes from the end to the first line, and no line is left out or repeated', async () => {
    const server_id = await servers.run('seq 1 700 | sed "s/^/found /"; echo other; exec sleep 600');
    await servers.waitForLines(server_id, 256);
    const page = async (query: Record<string, string>) =>
      await muster.api.ok(
        'GET',
        `${servers.path}/${server_id}/log-search?${new URLSearchParams({ stream: 'std_out', ...query })}`,
        { token: game.cloud_token },
      );
    await waitFor(async () => (await page({ search_text: 'other' })).lines.length === 1, 'the last line');
    const texts: string[] = [];
    const sizes: number[] = [];
    for (let before_line = '701'; before_line !== '0'; ) {
      const { lines, from_line, end_line } = await page({ search_text: 'FOUND', before_line });
      expect(end_line).toBe(701);
      sizes.push(lines.length);
      texts.unshift(...lines.map(({ number, text }: { number: number; text: string }) => `${number} ${text}`));
      before_line = String(from_line);
    }
    expect(texts).toEqual(Array.from({ length: 700 }, (_, number) => `${number} found ${number + 1}`));
    expect(Math.max(...sizes)).toBe(256);
    expect((await page({ search_text: 'found', search_case_sensitive: 'true', before_line: '0' })).lines).toEqual([]);
    expect((await page({ search_text: 'Found', search_case_sensitive: 'true' })).lines).toEqual([]);
    const around = `${servers.path}/${server_id}/log-lines?stream=std_out&first_line=350`;
    const { lines } = await muster.api.ok('GET', around, { token: game.cloud_token });
    expect(lines[0]).toMatchObject({ number: 350, text: 'found 351' });
    await servers.destroy(server_id, '?override_kill_timeout=0');
  });
});

describe('a removed server:', () => {
  const removeAllEnded = async () => {
    const before = new Date(muster.clock.now().getTime() + 60_000);
    for await (const _ of removeEnded(muster.database, before, () => sql`false`));
  };

  test('followers of its log get the error that a GET gets', async () => {
    const server_id = await servers.run('exit 0');
    await waitForEndEvent(muster, server_id);
    using socket = openSocket(muster.config.public_url, { token: game.cloud_token });
    const path = `${servers.path}/${server_id}/logs?stream=std_out`;
    await socket.body(await socket.subscribe('a', path));
    await removeAllEnded();
    const { error } = await socket.next(({ type }) => type === 'error');
    expect(error.code).toBe('SERVERS_SERVER_NOT_FOUND');
    expect(outcomeOf(await muster.api.get(path, game.cloud_token))).toBe('404 SERVERS_SERVER_NOT_FOUND');
  });

  test('a cursor that names it leads to the next page', async () => {
    const kept = await servers.run('exec sleep 600');
    muster.clock.advance(1_000);
    const cursor = await servers.run('exit 0');
    await waitForEndEvent(muster, cursor);
    const list = async () =>
      (await muster.api.ok('GET', `${servers.path}?cursor=${cursor}`, { token: game.cloud_token })).servers.map(
        ({ id }: { id: string }) => id,
      );
    const page = await list();
    expect(page[0]).toBe(kept);
    await removeAllEnded();
    expect(await list()).toEqual(page);
    await servers.destroy(kept, '?override_kill_timeout=0');
  });
});
