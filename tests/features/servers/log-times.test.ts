import { afterAll, describe, expect, test } from 'bun:test';
import { appendFileSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeLines } from '../../../src/features/servers/logs/log-lines.ts';
import { countLinesBefore, packTimes, timeLines, timesOf } from '../../../src/features/servers/logs/log-times.ts';
import { createOutputFiles } from '../../../src/features/servers/runtimes/output/output-files.ts';

const directory = mkdtempSync(join(tmpdir(), 'muster-log-times-'));
afterAll(() => rmSync(directory, { recursive: true }));

const NOW = new Date(1_800_000_000_000);
const before = (ms: number) => new Date(NOW.getTime() - ms);
const LIMITS = { bytes_max: 1_024, backlog_bytes_max: 4_096 };
const LINE_BYTES_MAX = 8;

/** Returns how long before now each line of some output was written. */
function agesOf(text: string, parts: [until: number, age_ms: number][], not_before?: Date): number[] {
  const written = parts.map(([until, age_ms]) => ({ until, age_ms }));
  const lines = takeLines(
    Buffer.from(text),
    LINE_BYTES_MAX,
    false,
    written.map(({ until }) => until),
  );
  const timed = timeLines(lines, written, { now: NOW, not_before });
  if (timed.length === 0) return [];
  const chunk = { line_count: lines.line_count, ...packTimes(timed) };
  return timesOf(chunk, { skipped: 0, count: lines.line_count }).map((ts) => NOW.getTime() - ts.getTime());
}

describe('times of log lines:', () => {
  const CASES = [
    ['no line', '', [], undefined, []],
    ['an unfinished line', 'half', [[4, 10]], undefined, []],
    ['unknown times are now', 'a\nb\n', [], undefined, [0, 0]],
    [
      'a line for each part',
      'a\nb\nc\n',
      [
        [2, 30],
        [4, 20],
        [6, 10],
      ],
      undefined,
      [30, 20, 10],
    ], // prettier-ignore
    [
      'a line that came in two parts has the time of its end',
      'aa\nb\n',
      [
        [1, 30],
        [3, 20],
        [5, 10],
      ],
      undefined,
      [20, 10],
    ], // prettier-ignore
    ['what follows the known parts was written now', 'a\nb\n', [[2, 30]], undefined, [30, 0]],
    [
      'no line is earlier than the one before it',
      'a\nb\n',
      [
        [2, 10],
        [4, 30],
      ],
      undefined,
      [10, 10],
    ], // prettier-ignore
    [
      'no line is earlier than the piece before',
      'a\nb\n',
      [
        [2, 30],
        [4, 10],
      ],
      before(20),
      [20, 10],
    ], // prettier-ignore
    ['no line is later than now', 'a\n', [[2, -50]], undefined, [0]],
    ['no line is earlier than a piece before it by a clock that is ahead', 'a\n', [[2, 10]], before(-1_000), [-1_000]],
    [
      'the parts of a line that is cut',
      '123456789\n',
      [
        [8, 30],
        [10, 10],
      ],
      undefined,
      [30, 10],
    ], // prettier-ignore
  ] as const;
  test.each(CASES)('%s', (_, text, parts, not_before, ages) => {
    expect(agesOf(text, [...parts] as [number, number][], not_before)).toEqual([...ages]);
  });

  test('a stored chunk has the number of its lines that were written before a given time', () => {
    const timed = [
      { line_count: 3, ts: before(30) },
      { line_count: 2, ts: before(10) },
    ];
    const chunk = { line_count: 5, ...packTimes(timed) };
    expect([31, 30, 29, 10, 9].map((ms) => countLinesBefore(chunk, before(ms)))).toEqual([0, 0, 3, 3, 5]);
    expect(timesOf(chunk, { skipped: 2, count: 2 })).toEqual([before(30), before(10)]);
  });
});

describe('times of an output file:', () => {
  const fileOf = (text: string) => {
    const file = join(directory, crypto.randomUUID());
    writeFileSync(file, text);
    return file;
  };
  const AGE_MS = 50_000;

  test('a piece was written when its file changed, however late it is read', async () => {
    const file = fileOf('one\n');
    const changed_ms = Date.now() - AGE_MS;
    utimesSync(file, changed_ms / 1_000, changed_ms / 1_000);
    const { written } = await createOutputFiles().read(file, { from: undefined, ...LIMITS });
    expect(written).toEqual([{ until: 4, age_ms: expect.any(Number) }]);
    // A time of change may be rounded to a millisecond.
    expect(written?.[0]?.age_ms).toBeWithin(AGE_MS - 1, Date.now() - changed_ms + 2);
  });

  test('a server that sets the time of its file to the future writes now', async () => {
    const file = fileOf('one\n');
    const began_ms = Date.now();
    utimesSync(file, began_ms / 1_000 + 3_600, began_ms / 1_000 + 3_600);
    const { written } = await createOutputFiles().read(file, { from: undefined, ...LIMITS });
    expect(written?.[0]?.age_ms).toBeWithin(0, Date.now() - began_ms + 1);
  });

  test('a file that grows is observed between readings', async () => {
    const file = fileOf('');
    const files = createOutputFiles();
    await files.read(file, { from: undefined, ...LIMITS });
    appendFileSync(file, 'first\n');
    const first = await files.read(file, { from: undefined, ...LIMITS });
    for (let line = 0; line < 20; line += 1) {
      appendFileSync(file, `${line}\n`);
      await Bun.sleep(30);
    }
    const { written } = await files.read(file, { from: first.resumeAfter(6), ...LIMITS });
    expect(written?.length).toBeGreaterThan(2);
    const ages = written?.map(({ age_ms }) => age_ms) ?? [];
    expect(ages.toSorted((one, other) => other - one)).toEqual(ages);
    expect(written?.at(-1)?.until).toBe(50);
  });

  test('what is written to a truncated file has times of its own', async () => {
    const file = fileOf('one\ntwo\n');
    const files = createOutputFiles();
    const { resumeAfter } = await files.read(file, { from: undefined, ...LIMITS });
    truncateSync(file, 0);
    appendFileSync(file, 'new\n');
    const { bytes, written } = await files.read(file, { from: resumeAfter(8), ...LIMITS });
    expect(Buffer.from(bytes).toString()).toBe('new\n');
    expect(written?.map(({ until }) => until)).toEqual([4]);
  });
});
