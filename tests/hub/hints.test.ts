import { expect, test } from 'bun:test';
import { BOT_HINTS, TROUBLES } from '../../src/hub/data/hints.ts';
import { CATALOGUE } from '../../src/platform/error-catalogue.ts';

/** What the script of the bots calls a request without an answer. */
const WITHOUT_ANSWER = 'NO_ANSWER';

test.each([
  ['those for bots', BOT_HINTS],
  ['troubles', TROUBLES],
])('hints: %s are of codes that the service has', (_, hints) => {
  const codes = Object.keys(hints).filter((code) => code !== WITHOUT_ANSWER);
  expect(codes.filter((code) => !(code in CATALOGUE))).toEqual([]);
  expect(codes.length).toBeGreaterThan(1);
});
