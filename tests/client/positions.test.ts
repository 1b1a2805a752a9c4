import { describe, expect, test } from 'bun:test';
import { fitsFrame, readPosition } from '../../src/client/positions.ts';

const X64 = 'x'.repeat(64);

describe('readPosition', () => {
  const POSITIONS: [string, string | undefined, string, string | undefined][] = [
    ['/a', undefined, '/a', undefined],
    ['/a', 'e.1', '/a', 'e.1'],
    ['/a?', undefined, '/a?', undefined],
    ['/a?b=1&c', undefined, '/a?b=1&c', undefined],
    ['/a?watch_index=e.1', undefined, '/a', 'e.1'],
    ['/a?watch_index=e.1', 'e.2', '/a', 'e.2'],
    ['/a?b=%20&watch_index=e.1&c=+', undefined, '/a?b=%20&c=+', 'e.1'],
    ['/a?watch_index=e.1&watch_index=e.2', undefined, '/a', 'e.1'],
    ['/a?watch%5Findex=e%2E1', undefined, '/a', 'e.1'],
    ['/a??watch_index=e.1', undefined, '/a??watch_index=e.1', undefined],
    ['/a?no_watch_index=e.1&watch_indexes=e.2', undefined, '/a?no_watch_index=e.1&watch_indexes=e.2', undefined],
    ['/a#b', undefined, '/a', undefined],
    ['/a?b#c?watch_index=e.1#d', undefined, '/a?b', undefined],
    ['/a#b&watch_index=e.1', 'e.2', '/a', 'e.2'],
    ['/a', X64, '/a', X64],
    ['/a', `${X64}x`, '/a', undefined],
    [`/a?watch_index=${X64}x`, undefined, '/a', undefined],
    [`/${'a'.repeat(4_095)}#${'b'.repeat(4_096)}`, undefined, `/${'a'.repeat(4_095)}`, undefined],
  ];
  test.each(POSITIONS)('%s with the index %p has the path %s and the index %p', (given, watch_index, path, index) => {
    expect(readPosition(given, watch_index)).toEqual({ path, index });
  });

  test.each(['', 'a', '?watch_index=e.1', '#/a', 'http://muster/a', `/${'a'.repeat(4_096)}`])(
    '%s: throws a TypeError',
    (given) => {
      expect(() => readPosition(given, undefined)).toThrow(TypeError);
    },
  );

  test('fitsFrame: accepts paths of ordinary characters, and refuses those that exceed a frame', () => {
    expect(fitsFrame(`/${'€'.repeat(4_095)}`)).toBe(true);
    expect(fitsFrame(`/${'"'.repeat(4_095)}`)).toBe(true);
    expect(fitsFrame(`/${'\u0001'.repeat(2_730)}`)).toBe(false);
  });
});
