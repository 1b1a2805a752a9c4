import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { selectLines, takeLines } from '../../../src/features/servers/logs/log-lines.ts';

const MAX = 8;
const take = (text: string, has_ended = false) => {
  const { content, lines_until: _, ...counts } = takeLines(Buffer.from(text), MAX, has_ended);
  return { content: Buffer.from(content).toString(), ...counts };
};

const allOf = (content: Uint8Array) => selectLines(content, { skipped: 0, count: Number.POSITIVE_INFINITY });

describe('whole lines of some output', () => {
  const CASES = [
    ['nothing', '', { content: '', line_count: 0, consumed_bytes: 0 }],
    ['an unfinished line waits', 'half', { content: '', line_count: 0, consumed_bytes: 0 }],
    ['a line', 'one\n', { content: 'one\n', line_count: 1, consumed_bytes: 4 }],
    [
      'lines, and an unfinished one that waits',
      'one\ntwo\nhalf',
      { content: 'one\ntwo\n', line_count: 2, consumed_bytes: 8 },
    ],
    ['empty lines are lines', '\n\na\n', { content: '\n\na\n', line_count: 3, consumed_bytes: 4 }],
    [
      'carriage returns are part of their line',
      'a\r\nb\rc\n',
      { content: 'a\r\nb\rc\n', line_count: 2, consumed_bytes: 7 },
    ],
    ['a line of the maximum length', '12345678\n', { content: '12345678\n', line_count: 1, consumed_bytes: 9 }],
    ['an unfinished line of the maximum length waits', '12345678', { content: '', line_count: 0, consumed_bytes: 0 }],
    ['a longer line becomes two', '123456789\n', { content: '12345678\n9\n', line_count: 2, consumed_bytes: 10 }],
    [
      'the first part of a longer line need not wait',
      '1234567890',
      { content: '12345678\n', line_count: 1, consumed_bytes: 8 },
    ],
    [
      'a very long line becomes many',
      `${'x'.repeat(17)}\n`,
      { content: 'xxxxxxxx\nxxxxxxxx\nx\n', line_count: 3, consumed_bytes: 18 },
    ],
    [
      'a longer line is cut before a character, not inside of it',
      '123456789é\n1234567é\n12345🦊8\n',
      { content: '12345678\n9é\n1234567\né\n12345\n🦊8\n', line_count: 6, consumed_bytes: 33 },
    ],
  ] as const;
  test.each(CASES)('%s', (_, output, taken) => {
    expect(take(output)).toEqual(taken);
  });

  test('include the unfinished one once the server has ended', () => {
    expect(take('one\nhalf', true)).toEqual({ content: 'one\nhalf\n', line_count: 2, consumed_bytes: 8 });
    expect(take('123456789', true)).toEqual({ content: '12345678\n9\n', line_count: 2, consumed_bytes: 9 });
    expect(take('', true)).toEqual({ content: '', line_count: 0, consumed_bytes: 0 });
  });

  test('are not copied if nothing is cut, however short they are', () => {
    const output = Buffer.from('\n'.repeat(100_000));
    const { content, line_count } = takeLines(output, MAX, false);
    expect([content.buffer === output.buffer, content.length, line_count]).toEqual([true, 100_000, 100_000]);
  });

  test('are byte for byte the same, however the output is cut into pieces', () => {
    const byte = fc.oneof(fc.constant(0x0a), fc.integer({ min: 0, max: 255 }));
    const pieces = fc.array(fc.uint8Array({ maxLength: 30 }).chain((bytes) => fc.tuple(fc.constant(bytes), byte)));
    fc.assert(
      fc.property(pieces, (parts) => {
        const output = Buffer.concat(parts.flatMap(([bytes, last]) => [bytes, Uint8Array.of(last)]));
        const lines: Uint8Array[] = [];
        let from = 0;
        let line_count = 0;
        for (let to = 0; to <= output.length; to += 1 + (to % 7)) {
          const one = takeLines(output.subarray(from, Math.max(from, to)), output.length, false);
          lines.push(...allOf(one.content));
          line_count += one.line_count;
          from += one.consumed_bytes;
        }
        const rest = takeLines(output.subarray(from), output.length, true);
        lines.push(...allOf(rest.content));
        expect(from + rest.consumed_bytes).toBe(output.length);
        expect(line_count + rest.line_count).toBe(lines.length);
        const all = allOf(output);
        expect(lines.map((line) => Buffer.from(line).toString('hex'))).toEqual(
          all.map((line) => Buffer.from(line).toString('hex')),
        );
      }),
    );
  });
});

describe('lines of a chunk', () => {
  const CASES = [
    ['all of them', { skipped: 0, count: 9 }, ['a', '', 'b', 'c']],
    ['the first', { skipped: 0, count: 2 }, ['a', '']],
    ['those in the middle', { skipped: 1, count: 2 }, ['', 'b']],
    ['the last', { skipped: 3, count: 9 }, ['c']],
    ['none after the end', { skipped: 4, count: 9 }, []],
  ] as const;
  test.each(CASES)('%s', (_, range, wanted) => {
    const lines = selectLines(Buffer.from('a\n\nb\nc\n'), range);
    expect(lines.map((line) => Buffer.from(line).toString())).toEqual([...wanted]);
  });
});
