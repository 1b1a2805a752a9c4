import { expect, test } from 'bun:test';
import { differencesOf } from '../../src/shared/difference.ts';

test.each([
  ['equal values', { a: { b: [1] } }, { a: { b: [1] } }, []],
  ['a changed value', { a: { b: 1 } }, { a: { b: 2 } }, [{ path: 'a.b', before: 1, after: 2 }]],
  ['a new object', {}, { a: { b: 1 } }, [{ path: 'a', before: undefined, after: { b: 1 } }]],
  ['a removed value', { a: null }, {}, [{ path: 'a', before: null, after: undefined }]],
  ['a list, as a whole', { a: [1, 2] }, { a: [2, 1] }, [{ path: 'a', before: [1, 2], after: [2, 1] }]],
  [
    'several places, in order',
    { z: 1, a: { x: 1 } },
    { z: 2, a: { y: 1 } },
    [
      { path: 'a.x', before: 1, after: undefined },
      { path: 'a.y', before: undefined, after: 1 },
      { path: 'z', before: 1, after: 2 },
    ],
  ],
])('differences: %s', (_, before, after, changes) => {
  expect(differencesOf(before, after)).toEqual(changes);
});
