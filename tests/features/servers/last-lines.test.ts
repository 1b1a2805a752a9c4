import { expect, test } from 'bun:test';
import { selectLastLines } from '../../../src/features/servers/logs/last-lines.ts';

/** Lines of a stream, named by it and their number, at the given milliseconds. */
const linesAt = (stream: string, moments: number[]) =>
  moments.map((ms, index) => ({ text: `${stream}${index}`, ts: new Date(ms) }));

test.each<[name: string, out: number[], err: number[], last: string[]]>([
  ['are none without output', [], [], []],
  ['are all if there are few, by time', [1, 3], [2], ['out0', 'err0', 'out1']],
  ['of one stream are all of it', [1, 2, 3, 4, 5], [], ['out1', 'out2', 'out3', 'out4']],
  ['have the share of a stream that wrote earlier', [5, 6, 7, 8, 9], [1, 2], ['err0', 'err1', 'out3', 'out4']],
  [
    'have one more of the other if a stream has less than its share',
    [5, 6, 7, 8],
    [1],
    ['err0', 'out1', 'out2', 'out3'],
  ],
  ['have the newest share of each', [1, 3, 5], [2, 4, 6], ['out1', 'err1', 'out2', 'err2']],
])('the last four lines of a log %s', (_name, out, err, last) => {
  expect(selectLastLines([linesAt('out', out), linesAt('err', err)], 4).map(({ text }) => text)).toEqual(last);
});
