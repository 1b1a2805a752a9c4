import { describe, expect, test } from 'bun:test';
import { readToken } from '../../src/hub/data/tokens.ts';
import type { CallerKind } from '../../src/platform/tokens/caller.ts';
import { LIFETIMES_MS } from '../../src/platform/tokens/tokens.ts';
import { CALLER_KINDS, makeCaller } from '../support/callers.ts';
import { makeTokenMaker } from '../support/token-maker.ts';

/** How the hub's description of each kind begins. */
const WORDS: Record<CallerKind, string> = {
  identity: 'An identity:',
  public: 'Public:',
  development: 'Development:',
  lobby: 'Lobby:',
  player: 'Player:',
  development_player: 'Player of a development token',
  cloud: 'Cloud:',
  service: 'Service:',
  device_link: 'Device link:',
  share: 'Share link:',
  metrics: 'Metrics:',
};

describe('what is this token?', () => {
  test.each(CALLER_KINDS)('a token of the kind %s is explained, with its times', async (kind) => {
    const { tokens, now } = await makeTokenMaker();
    const claims = readToken(await tokens.issue(makeCaller(kind)));
    expect(claims?.kind).toStartWith(WORDS[kind]);
    expect(claims?.issued_at).toEqual(new Date(now.ms));
    expect(claims?.expires_at).toEqual(new Date(now.ms + LIFETIMES_MS[kind]));
  });

  test.each(['public', 'development'] as const)('a %s token has the name of its namespace', async (kind) => {
    const { tokens } = await makeTokenMaker();
    for (const suffix of ['prod', 'my-game-2', 'player-1']) {
      expect(readToken(await tokens.issue(makeCaller(kind), { suffix }))?.kind).toStartWith(WORDS[kind]);
    }
  });

  test.each([
    ['an empty text', ''],
    ['a word', 'nonsense'],
    ['a JWS without a label', 'e30.e30.e30'],
    ['an unknown label', 'constructor.e30.e30.e30'],
    ['claims that are no base64', 'cloud.e30.%.e30'],
    ['empty claims', 'cloud.e30..e30'],
  ])('%s is no token', (_, text) => {
    expect(readToken(text)).toBeUndefined();
  });
});
