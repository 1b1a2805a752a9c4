import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService({ MUSTER_WATCH_HOLD_MS: '1000' });
let game: TestGame;
let servers: ReturnType<typeof serversOf>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  servers = serversOf(muster, game);
});

/** Prints what files in its folder contain, so that the test decides when. */
const OBEDIENT = `cd "$HOME"; echo up; while :; do
  for f in say.*; do [ -e "$f" ] && mv "$f" said && cat said; done
  [ -e end ] && exit 0
  sleep 0.01
done`;
const print = (server_id: string, text: string) => {
  const file = `${muster.config.data_directory}/servers/${server_id}/work/`;
  return Bun.write(`${file}new`, text).then(() => Bun.spawn(['mv', `${file}new`, `${file}say.${count++}`]).exited);
};
let count = 0;

const textOf = (lines: string[]) => lines.map((line) => Buffer.from(line, 'base64').toString());
const bytesOf = (lines: string[]) => lines.map((line) => Buffer.from(line, 'base64').toString('latin1'));

describe('the log of a server', () => {
  const REFUSALS = [
    ['no stream', ''],
    ['an unknown stream', '?stream=stdout'],
    ['both streams', '?stream=std_out,std_err'],
    ['two streams', '?stream=std_out&stream=std_err'],
    ['two indexes', '?stream=std_out&watch_index=1&watch_index=2'],
    ['an index that is too long', `?stream=std_out&watch_index=${'1'.repeat(65)}`],
  ] as const;
  test.each(REFUSALS)('is refused with %s', async (_, query) => {
    const answer = await muster.api.get(`${servers.path}/${crypto.randomUUID()}/logs${query}`, game.cloud_token);
    expect(outcomeOf(answer)).toBe('400 API_BAD_QUERY_PARAMETER');
  });

  test('is refused to a service token', async () => {
    const server_id = await servers.run('exit 0');
    const answer = await muster.api.get(`${servers.path}/${server_id}/logs?stream=std_out`, game.service_token);
    expect(outcomeOf(answer)).toBe('403 API_FORBIDDEN');
  });

  test('has each stream from old to new, each line with its time, also after the end', async () => {
    const began_ms = muster.clock.now().getTime();
    const server_id = await servers.run('echo one; echo oops >&2; echo; printf "no newline"; exit 1');
    await waitForEndEvent(muster, server_id);
    const { body } = await servers.log(server_id);
    expect(textOf(body.lines)).toEqual(['one', '', 'no newline']);
    expect(body.timestamps).toHaveLength(3);
    const times = body.timestamps.map((time: string) => new Date(time).toISOString());
    expect(times).toEqual(body.timestamps);
    expect(times.toSorted()).toEqual(times);
    expect(Date.parse(times[0])).toBeWithin(began_ms, muster.clock.now().getTime() + 1);
    expect(await servers.linesOf(server_id, 'std_err')).toEqual(['oops', '[muster] the server ended with exit code 1']);
  });

  test('has arbitrary bytes unchanged', async () => {
    // printf reads octal numbers.
    const server_id = await servers.run(String.raw`printf 'a\000b\n\377\376\n\033[31mred\r\nhalf \303\n\200\n'`);
    await waitForEndEvent(muster, server_id);
    const { body } = await servers.log(server_id);
    expect(bytesOf(body.lines)).toEqual(['a\0b', '\xff\xfe', '\x1b[31mred\r', 'half \xc3', '\x80']);
  });

  test('cuts lines longer than 16 KiB, without losing a byte', async () => {
    const server_id = await servers.run(`head -c 40000 /dev/zero | tr '\\0' x; echo; echo end`);
    await waitForEndEvent(muster, server_id);
    expect((await servers.linesOf(server_id)).map((line) => line.length)).toEqual([16_384, 16_384, 7_232, 3]);
  });

  test('has its last 256 lines', async () => {
    const server_id = await servers.run('seq 1 1000');
    await waitForEndEvent(muster, server_id);
    expect(await servers.linesOf(server_id)).toEqual(Array.from({ length: 256 }, (_, index) => String(745 + index)));
  });

  test('is empty for a server without output', async () => {
    const server_id = await servers.run('exec sleep 600');
    const { body } = await servers.log(server_id);
    expect(body).toEqual({ lines: [], timestamps: [], watch: { index: expect.any(String) } });
    await servers.destroy(server_id, '?override_kill_timeout=0');
    await waitForEndEvent(muster, server_id);
    expect((await servers.log(server_id)).body).toEqual(body);
  });
});

describe('following the log of a server', () => {
  test('waits for the next line, gets it as soon as it is written, and gets each once', async () => {
    const server_id = await servers.run(OBEDIENT);
    await servers.waitForLines(server_id, 1);
    let { index } = (await servers.log(server_id)).body.watch;
    const got: string[] = [];
    for (const written of ['first\n', 'second\nthird\n', 'fourth\n']) {
      const next = servers.log(server_id, 'std_out', index);
      await print(server_id, written);
      const { body } = await next;
      got.push(...textOf(body.lines));
      expect(body.watch.index).not.toBe(index);
      index = body.watch.index;
    }
    // Lines that were written together may come in several answers.
    while (got.length < 4) {
      const { body } = await servers.log(server_id, 'std_out', index);
      got.push(...textOf(body.lines));
      index = body.watch.index;
    }
    expect(got).toEqual(['first', 'second', 'third', 'fourth']);
    const { lines } = (await servers.log(server_id)).body;
    expect(textOf(lines)).toEqual(['up', ...got]);
  });

  test('returns no lines and the same index when nothing comes', async () => {
    const server_id = await servers.run('echo one; exit 0');
    await waitForEndEvent(muster, server_id);
    const { index } = (await servers.log(server_id)).body.watch;
    expect((await servers.log(server_id, 'std_out', index)).body).toEqual({
      lines: [],
      timestamps: [],
      watch: { index },
    });
  });

  test('gets the last lines of a server that ends', async () => {
    const server_id = await servers.run(`trap 'printf bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`);
    await servers.waitForLines(server_id, 1);
    const { index } = (await servers.log(server_id)).body.watch;
    const next = servers.log(server_id, 'std_out', index);
    await servers.destroy(server_id);
    expect(textOf((await next).body.lines)).toEqual(['bye']);
  });

  test('reads a long log from its beginning, page by page, with no line left out', async () => {
    const server_id = await servers.run(OBEDIENT);
    await servers.waitForLines(server_id, 1);
    let { index } = (await servers.log(server_id)).body.watch;
    await print(server_id, Array.from({ length: 1_000 }, (_, number) => `${number}\n`).join(''));
    await print(server_id, 'last\n');
    const got: string[] = [];
    await waitFor(async () => {
      const { body } = await servers.log(server_id, 'std_out', index);
      expect(body.lines.length).toBeLessThanOrEqual(256);
      expect(body.timestamps.length).toBe(body.lines.length);
      got.push(...textOf(body.lines));
      index = body.watch.index;
      return got.at(-1) === 'last';
    }, 'all lines');
    expect(got).toEqual([...Array.from({ length: 1_000 }, (_, number) => String(number)), 'last']);
  });

  const INDEXES = ['', '0', 'abc', '-1', '1.5', '99999999.3', '1795249016577000000'];
  test.each(INDEXES)('with an invalid index, "%s", gets the newest lines', async (index) => {
    const server_id = await servers.run('echo one');
    await waitForEndEvent(muster, server_id);
    const { body } = await servers.log(server_id, 'std_out', encodeURIComponent(index));
    expect(textOf(body.lines)).toEqual(['one']);
  });

  test('many followers get the same lines', async () => {
    const server_id = await servers.run(OBEDIENT);
    await servers.waitForLines(server_id, 1);
    const { index } = (await servers.log(server_id)).body.watch;
    const all = Array.from({ length: 30 }, () => servers.log(server_id, 'std_out', index));
    await print(server_id, 'received\n');
    const received = await Promise.all(all);
    expect(new Set(received.map(({ body }) => textOf(body.lines).join()))).toEqual(new Set(['received']));
  });
});

test('logs: a server that floods its log is limited and delays no other', async () => {
  const line = 'this line is written again and again and again and again';
  const loud = await servers.run(`echo up >&2; yes "${line}" | head -c 300000000; echo done >&2; exec sleep 600`);
  await servers.waitForLines(loud, 1, 'std_err');
  const quiet = await servers.run('echo quiet; exec sleep 600');
  expect(await servers.waitForLines(quiet, 1)).toEqual(['quiet']);
  await servers.waitForLines(loud, 2, 'std_err');
  await servers.destroy(loud, '?override_kill_timeout=0');
  await waitForEndEvent(muster, loud);
  await using database = openDatabase(muster.database_address, 1);
  const [kept] = await database.queries.execute<{ bytes: number; dropped: number }>(sql`
    select sum(length(content))::int as bytes,
      sum((convert_from(content, 'utf8') ~ '^\\[muster\\] at least \\d+ bytes dropped')::int)::int as dropped
    from server_log_chunks where server_id = ${loud}`);
  expect(kept?.bytes).toBeLessThanOrEqual(17 * 1024 ** 2);
  expect(kept?.dropped).toBeGreaterThan(0);
  expect((await servers.linesOf(loud)).at(-2)).toBe(line);
}, 300_000);
