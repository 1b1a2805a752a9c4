import { expect, test } from 'bun:test';
import { WITHOUT_CRYPTOGRAPHY } from '../../src/hub/bots/protocol.ts';
import { BOT_HINTS, REFUSAL_PROBLEMS } from '../../src/hub/data/hints.ts';
import { CATALOGUE } from '../../src/platform/error-catalogue.ts';

/** What the script of the bots calls a request that the service did not answer, and one that it could not send. */
const OF_BOTS = ['NO_ANSWER', WITHOUT_CRYPTOGRAPHY];

test.each([
  ['those for bots', BOT_HINTS],
  ['problems of refusals', REFUSAL_PROBLEMS],
])('hints: %s are of codes that the service has', (_, hints) => {
  const codes = Object.keys(hints).filter((code) => !OF_BOTS.includes(code));
  expect(codes.filter((code) => !(code in CATALOGUE))).toEqual([]);
  expect(codes.length).toBeGreaterThan(1);
});
