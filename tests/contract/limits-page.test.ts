import { expect, test } from 'bun:test';
import { averagePerMinute, inEachMinute } from '../../src/platform/limits/limit.ts';

const PAGE = 'docs/decisions/0018-limits-and-addresses.md';
const LIMIT = /\b(?<kind>inEachMinute|averagePerMinute)\('(?<name>[\w-]+)', (?<count>[\d_]+)(?<options>[^)]*)\)/g;
/** Counted once at the start, so that an unusable store is reported. */
const NOT_OF_REQUESTS = new Set(['start']);

/** Returns the limits that the sources name, with the requests that each allows within its window. */
async function listLimits(): Promise<{ name: string; requests: number }[]> {
  const paths = [...new Bun.Glob('src/{features,platform}/**/*.ts').scanSync('.')];
  const sources = await Promise.all(paths.map((path) => Bun.file(path).text()));
  return sources
    .flatMap((source) => [...source.matchAll(LIMIT)])
    .map(({ groups: { kind, name = '', count = '', options = '' } = {} }) => {
      const number = Number(count.replaceAll('_', ''));
      const window = /window_ms: ([\d_]+)/.exec(options)?.[1]?.replaceAll('_', '');
      const limit =
        kind === 'inEachMinute'
          ? inEachMinute(name, number)
          : averagePerMinute(name, number, window === undefined ? {} : { window_ms: Number(window) });
      return { name, requests: limit.requests };
    });
}

test(`limits: ${PAGE} has the number of each limit of requests`, async () => {
  const text = await Bun.file(PAGE).text();
  const [, table = ''] = text.split('### The limits\n');
  const limits = (await listLimits()).filter(({ name }) => !NOT_OF_REQUESTS.has(name));
  expect(limits.length).toBeGreaterThan(30);
  const isNamed = ({ requests }: { requests: number }) =>
    new RegExp(`(?<![\\d,])${requests.toLocaleString('en')}(?![\\d,])`).test(table);
  expect(limits.filter((limit) => !isNamed(limit))).toEqual([]);
});
