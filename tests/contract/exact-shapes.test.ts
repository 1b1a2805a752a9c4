import { describe, expect, test } from 'bun:test';
import { listOf, mapOf, record, type Shape, shapeProblems, withoutOptional, wrongBodies } from './exact-shapes.ts';

const SHAPE = record({ id: 'string', at: 'RFC3339', 'count?': 'u32', tags: mapOf('string'), parts: listOf('integer') });
const SAMPLE = { id: 'a', at: '2026-01-31T12:00:00.000Z', tags: { a: 'b' }, parts: [1] };

describe('shapeProblems', () => {
  test('finds none in a value of the shape, with and without its optional members', () => {
    expect(shapeProblems(SHAPE, SAMPLE)).toEqual([]);
    expect(shapeProblems(SHAPE, { ...SAMPLE, count: 4_294_967_295, tags: {}, parts: [] })).toEqual([]);
  });

  test.each([
    ['it.id: missing', { ...SAMPLE, id: undefined }],
    ['it.id: no string, but 7', { ...SAMPLE, id: 7 }],
    ['it.count: no u32, but null', { ...SAMPLE, count: null }],
    ['it.count: no u32, but 4294967296', { ...SAMPLE, count: 4_294_967_296 }],
    ['it.count: no u32, but 1.5', { ...SAMPLE, count: 1.5 }],
    ['it.at: no RFC3339, but "2026-01-31"', { ...SAMPLE, at: '2026-01-31' }],
    ['it.at: no RFC3339, but "2026-13-31T12:00:00Z"', { ...SAMPLE, at: '2026-13-31T12:00:00Z' }],
    ['it.tags.a: no string, but 1', { ...SAMPLE, tags: { a: 1 } }],
    ['it.tags: no object, but []', { ...SAMPLE, tags: [] }],
    ['it.parts[1]: no integer, but "2"', { ...SAMPLE, parts: [1, '2'] }],
    ['it.more: not specified', { ...SAMPLE, more: 1 }],
  ])('reports %s', (problem, value) => {
    // Through JSON, like an answer: undefined members disappear.
    expect(shapeProblems(SHAPE, JSON.parse(JSON.stringify(value)))).toEqual([problem]);
  });

  test("allows the members of the reference API's shape, with their types, if the shape names it", () => {
    const region = { region_id: 'a', universal_region: 'unknown' };
    expect(shapeProblems(record({ region_id: 'string' }, 'CloudRegionSummary'), region)).toEqual([]);
    expect(shapeProblems(record({ region_id: 'string' }), region)).toEqual(['it.universal_region: not specified']);
    expect(
      shapeProblems(record({ region_id: 'string' }, 'CloudRegionSummary'), { ...region, universal_region: 'moon' }),
    ).toHaveLength(1);
  });
});

test('wrongBodies: every body is wrong, and every member has one', () => {
  const shape: Shape = record({ inner: listOf(SHAPE), 'is_it?': 'boolean' });
  const sample = { inner: [{ ...SAMPLE, count: 1 }], is_it: true };
  const bodies = [...wrongBodies(shape, sample)];
  for (const [what, body] of bodies) expect([what, shapeProblems(shape, body).length > 0]).toEqual([what, true]);
  const reached = new Set(bodies.map(([what]) => what.split(':')[0]));
  expect([...reached].sort()).toEqual([
    'it',
    'it.inner',
    'it.inner[0]',
    'it.inner[0].at',
    'it.inner[0].count',
    'it.inner[0].id',
    'it.inner[0].parts',
    'it.inner[0].parts[0]',
    'it.inner[0].tags',
    'it.inner[0].tags.a',
    'it.is_it',
  ]);
  expect(withoutOptional(shape, sample)).toEqual({ inner: [SAMPLE] });
});
