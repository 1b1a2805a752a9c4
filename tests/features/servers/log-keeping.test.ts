import { describe, expect, test } from 'bun:test';
import { appendFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { LogName } from '../../../src/features/servers/logs/log-store.ts';
import {
  CHUNK_OVERHEAD_BYTES,
  createLogs,
  type Logs,
  PIECE_BYTES_MAX,
  type ReadOutput,
} from '../../../src/features/servers/logs/logs.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { countReadRows } from '../../support/database/table-scans.ts';
import { readerOf, shareServerLogs, textsOf } from '../../support/server-logs.ts';
import { waitForEndEvent } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';

const MIB = 1024 ** 2;
/** A file system whose files may be longer than any offset that can be read. */
const TMPFS = '/dev/shm';
/** Holds a lease on a file and writes a line to it, until its input ends. */
const HOLD_LEASE = `
  $SIG{IO} = "IGNORE";
  open(my $file, ">>", $ARGV[0]) or die;
  fcntl($file, 1024, 1) or die;
  syswrite($file, "line 40000\n");
  syswrite(STDOUT, "held\n");
  <STDIN>;`;
const muster = shareService();
const shared = shareServerLogs(muster);
const { makeLog } = shared;

/** Runs a server without output. */
async function runWithoutOutput() {
  const servers = shared.servers();
  const server_id = await servers.run('exec sleep 1000');
  await servers.waitForStart(server_id);
  const name: LogName = { server_id, stream: 'std_out' };
  const file = shared.fileOf(server_id);
  return { servers, server_id, name, file, read: readerOf(file) };
}

const openLogs = (on: Database = muster.database): Logs => createLogs({ database: on, clock: muster.clock });

async function linesOf(logs: Logs, name: LogName): Promise<string[]> {
  const lines: string[] = [];
  for (let from = 0; ; ) {
    const page = await logs.linesFrom(name, from);
    if (page.next_line === from) return lines;
    lines.push(...textsOf(page.lines));
    from = page.next_line;
  }
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
const write = (file: string, lines: string[]) => appendFileSync(file, lines.map((line) => `${line}\n`).join(''));

describe('server logs: what a server writes is kept', () => {
  test('in order and once, also if each piece is collected by another process', async () => {
    const { name, file, read } = await makeLog();
    for (let round = 0; round < 20; round += 1) {
      write(file, numbered(round * 10, round * 10 + 10));
      // Each time by another process, as after a restart.
      await openLogs().collect(name, read, false);
    }
    expect(await linesOf(openLogs(), name)).toEqual(numbered(0, 200));
  });

  test('once, also if it is collected twice concurrently, as at the end of a server', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    const reading: Promise<unknown>[] = [];
    for (let line = 0; line < 200; line += 1) {
      write(file, numbered(line, line + 1));
      reading.push(logs.collect(name, read, line % 2 === 0));
      if (line % 10 === 0) reading.push(logs.addLine({ ...name, stream: 'std_err' }, 'noted'));
      await new Promise(setImmediate);
    }
    await Promise.all(reading);
    expect(await linesOf(logs, name)).toEqual(numbered(0, 200));
    expect(await linesOf(logs, { ...name, stream: 'std_err' })).toEqual(Array(20).fill('noted'));
  });

  test('once, also if the answer of the database is lost', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs(losingAnswers(muster.database, 3));
    for (let round = 0; round < 20; round += 1) {
      write(file, numbered(round * 10, round * 10 + 10));
      await logs.collect(name, read, false).catch(() => {});
    }
    while (
      await logs.collect(name, read, true).then(
        ({ has_more }) => has_more,
        () => true,
      )
    );
    await logs.collect(name, read, true);
    expect(await linesOf(logs, name)).toEqual(numbered(0, 200));
  });

  test('if the server truncates its file, as by "> /dev/stdout"', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    write(file, numbered(0, 100));
    await logs.collect(name, read, false);
    truncateSync(file, 0);
    write(file, numbered(100, 102));
    await logs.collect(name, read, false);
    write(file, numbered(102, 104));
    await openLogs().collect(name, read, true);
    expect(await linesOf(logs, name)).toEqual(numbered(0, 104));
  });

  test.skipIf(!existsSync(TMPFS))('after its file was made longer than any offset that can be read', async () => {
    const { name } = await makeLog();
    const logs = openLogs();
    const folder = mkdtempSync(join(TMPFS, 'muster-log-'));
    const file = join(folder, 'std_out');
    const read = readerOf(file);
    write(file, numbered(0, 10));
    await logs.collect(name, read, false);
    await Bun.$`truncate -s 9007199254740993 ${file}`;
    await logs.collect(name, read, false);
    write(file, numbered(10, 12));
    await logs.collect(name, read, true);
    const lines = await linesOf(logs, name);
    expect([lines.slice(0, 10), lines.slice(11)]).toEqual([numbered(0, 10), numbered(10, 12)]);
    expect(lines[10]).toMatch(/^\[muster\] at least \d+ bytes dropped/);
    rmSync(folder, { recursive: true });
  });

  test('after its server lets go of a lease on its file, which until then cannot be opened', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    // So much that its space is freed afterwards.
    write(file, numbered(0, 40_000));
    while ((await logs.collect(name, read, false)).has_more);
    await using server = Bun.spawn(['perl', '-e', HOLD_LEASE, file], { stdin: 'pipe', stdout: 'pipe' });
    await server.stdout.getReader().read();
    expect(await logs.collect(name, read, false)).toEqual({ bytes: 0, has_more: false });
    server.stdin.end();
    expect(await server.exited).toBe(0);
    await logs.collect(name, read, true);
    expect(await linesOf(logs, name)).toEqual(numbered(0, 40_001));
  }, 120_000);

  test('with the times of lines that were written at different times and read together', async () => {
    const { name, file } = await makeLog();
    const logs = openLogs();
    const read: ReadOutput = async (query) => {
      const written = [90_000, 60_000, 30_000].map((age_ms, index) => ({ until: 7 * (index + 1), age_ms }));
      return { ...(await readerOf(file)(query)), written };
    };
    write(file, numbered(0, 3));
    await logs.collect(name, read, false);
    const { lines } = await logs.linesFrom(name, 1);
    const ages = lines.map(({ ts }) => Math.round((muster.clock.now().getTime() - ts.getTime()) / 10_000));
    expect(ages).toEqual([6, 3]);
    expect((await logs.lastLines(name)).lines.slice(1)).toEqual(lines);
  });

  test('unchanged if its file is missing', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    write(file, numbered(0, 3));
    await logs.collect(name, read, false);
    expect(await logs.collect(name, readerOf(shared.fileOf('nowhere')), true)).toEqual({ bytes: 0, has_more: false });
    expect(await linesOf(logs, name)).toEqual(numbered(0, 3));
  });

  test('without the middle if the server writes too fast, with a notice', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    write(file, ['first']);
    await logs.collect(name, read, false);
    const line = `${'x'.repeat(99)}\n`;
    appendFileSync(file, line.repeat((9 * MIB) / 64));
    const written = statSync(file).size - 'first\n'.length;
    while ((await logs.collect(name, read, true)).has_more);
    const [first, notice, ...rest] = await linesOf(logs, name);
    expect(first).toBe('first');
    expect(notice).toBe(
      `[muster] at least ${written - PIECE_BYTES_MAX} bytes dropped: the server writes faster than its log can be kept`,
    );
    // The first is the end of a cut line.
    expect(new Set(rest.slice(1))).toEqual(new Set([line.trimEnd()]));
    expect(rest.join('\n').length + 1).toBe(PIECE_BYTES_MAX);
  });

  test('up to its maximum size from the end, in the database and on the disk', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    const line = (number: number) => `${number} `.padEnd(1_023, 'x');
    const count = 20 * 1_024;
    for (let from = 0; from < count; from += 4_096) {
      write(
        file,
        Array.from({ length: 4_096 }, (_, index) => line(from + index)),
      );
      while ((await logs.collect(name, read, false)).has_more);
    }
    expect(statSync(file).size).toBe(20 * MIB);
    expect(statSync(file).blocks * 512).toBeLessThanOrEqual(2 * MIB);
    const { lines } = await logs.linesFrom(name, 0);
    const oldest = Number(
      Buffer.from(lines[0]?.bytes ?? [])
        .toString()
        .split(' ')[0],
    );
    expect(oldest).toBeGreaterThan(2 * 1_024);
    expect(oldest).toBeLessThanOrEqual(4 * 1_024);
    const last = await logs.lastLines(name);
    expect(last.next_line).toBe(count);
    expect(Buffer.from(last.lines.at(-1)?.bytes ?? []).toString()).toBe(line(count - 1));
  });

  test('up to a size that counts for each chunk what the database stores besides its lines', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    for (const number of [1, 2, 3]) {
      write(file, [`${number}`]);
      await logs.collect(name, read, false);
    }
    const rows = await muster.database.queries.execute<{ total_bytes: number }>(sql`
      select total_bytes::int from server_log_chunks where server_id = ${name.server_id} and stream = ${name.stream}
      order by first_line`);
    const of_chunk = '1\n'.length + CHUNK_OVERHEAD_BYTES;
    expect(rows.map(({ total_bytes }) => total_bytes)).toEqual([of_chunk, 2 * of_chunk, 3 * of_chunk]);
  });

  test('in whole lines, also if it is read in pieces after the end', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    const line = 'x'.repeat(99);
    appendFileSync(file, `${line}\n`.repeat((3 * MIB) / 100));
    while ((await logs.collect(name, read, true)).has_more);
    expect(new Set(await linesOf(logs, name))).toEqual(new Set([line]));
  });

  test('for exactly three days', async () => {
    const { name, file, read } = await makeLog();
    const logs = openLogs();
    write(file, ['old']);
    await logs.collect(name, read, false);
    muster.clock.advance(3 * 24 * 3_600_000 - 60_000);
    write(file, ['young']);
    await logs.collect(name, read, false);
    await logs.deleteOld();
    expect(await linesOf(logs, name)).toEqual(['old', 'young']);
    muster.clock.advance(120_000);
    await logs.deleteOld();
    expect(textsOf((await logs.lastLines(name)).lines)).toEqual(['young']);
    // A reader from the beginning gets what is left, with the original numbers.
    expect((await logs.linesFrom(name, 0)).next_line).toBe(2);
    write(file, ['next']);
    await openLogs().collect(name, read, true);
    expect((await logs.lastLines(name)).next_line).toBe(3);
  });

  test('for three days, also if no output follows, and is not read again after a restart', async () => {
    const { servers, server_id, name, file, read } = await runWithoutOutput();
    const logs = openLogs();
    write(file, ['old', 'older']);
    await logs.collect(name, read, false);
    muster.clock.advance(3 * 24 * 3_600_000 + 60_000);
    expect(await logs.deleteOld()).toBeGreaterThan(0);
    expect(await logs.deleteOld()).toBe(0);
    expect(await logs.lastLines(name)).toEqual({ lines: [], next_line: 2 });
    const restarted = openLogs();
    expect(await restarted.collect(name, read, false)).toEqual({ bytes: 0, has_more: false });
    write(file, ['new']);
    await restarted.collect(name, read, false);
    const { lines, next_line } = await restarted.lastLines(name);
    expect([textsOf(lines), next_line]).toEqual([['new'], 3]);

    await servers.destroy(server_id);
    await waitForEndEvent(muster, server_id);
    muster.clock.advance(3 * 24 * 3_600_000 + 60_000);
    expect(await restarted.deleteOld()).toBeGreaterThan(0);
    expect(await restarted.deleteOld()).toBe(0);
    expect(await restarted.lastLines(name)).toEqual({ lines: [], next_line: 3 });
  });

  test('so that its next line is read without the chunks before it', async () => {
    const { name } = await makeLog();
    const { queries } = muster.database;
    await queries.execute(sql`
      insert into server_log_chunks (server_id, stream, first_line, line_count, ts, total_bytes, content)
      select ${name.server_id}::uuid, ${name.stream}, chunk, 1, now(), chunk, convert_to(E'a\\n', 'UTF8')
      from generate_series(0, 4999) as chunk`);
    await queries.execute(sql`analyze server_log_chunks`);
    await using one = openDatabase(muster.database_address, 1);
    const logs = openLogs(one);
    const before = await countReadRows(one.queries, 'server_log_chunks');
    expect(await logs.linesFrom(name, 5_000)).toEqual({ lines: [], next_line: 5_000 });
    expect((await logs.linesFrom(name, 4_998)).next_line).toBe(5_000);
    expect((await countReadRows(one.queries, 'server_log_chunks')) - before).toBeLessThan(10);
    await queries.execute(sql`delete from server_log_chunks where server_id = ${name.server_id}`);
  });

  test('from the first line that is left, for a reader whose next line was removed', async () => {
    const { servers, server_id, name, file, read } = await runWithoutOutput();
    const logs = openLogs();
    write(file, numbered(0, 1_000));
    await logs.collect(name, read, false);
    muster.clock.advance(3 * 24 * 3_600_000 + 60_000);
    await logs.deleteOld();
    for (const line of [0, 400, 999, 1_000]) {
      expect(await logs.linesFrom(name, line)).toEqual({ lines: [], next_line: 1_000 });
    }
    const kept = numbered(1_000, 1_300);
    for (let from = 0; from < kept.length; from += 10) {
      write(file, kept.slice(from, from + 10));
      await logs.collect(name, read, false);
    }
    for (const line of [0, 400, 999, 1_000]) {
      const { lines, next_line } = await logs.linesFrom(name, line);
      expect([textsOf(lines), next_line]).toEqual([kept.slice(0, 256), 1_256]);
    }
    expect(await linesOf(logs, name)).toEqual(kept);
    await logs.deleteOld();
    expect(await linesOf(logs, name)).toEqual(kept);
    await servers.destroy(server_id);
  });
});

/** Returns the database with a failure instead of the answer to every nth statement, which is run. */
function losingAnswers(to: Database, every: number): Database {
  let count = 0;
  const execute: Database['queries']['execute'] = Object.assign(to.queries.execute);
  const queries = new Proxy(to.queries, {
    get(target, key) {
      if (key !== 'execute') return Reflect.get(target, key).bind(target);
      return async (...statement: Parameters<typeof execute>) => {
        const rows = await target.execute(...statement);
        count += 1;
        if (count % every === 0) throw new Error('the connection was lost');
        return rows;
      };
    },
  });
  return { ...to, queries };
}
