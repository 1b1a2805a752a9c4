import { describe, expect, test } from 'bun:test';
import { takePlayerToken } from '../../../src/features/gateway/player-tokens.ts';

const take = (target: string, protocols: string[] = [], headers: Record<string, string> = {}) =>
  takePlayerToken({ target, protocols }, new Headers(headers));

describe('gateway: the token of a player is taken out', () => {
  const QUERIES: [target: string, rest: string][] = [
    ['/ws?player_token=T', '/ws'],
    ['/ws?token=T', '/ws'],
    ['/ws?player%5Ftoken=%54', '/ws'],
    ['/ws?room=a%20b&flag&player_token=T', '/ws?room=a%20b&flag'],
    ['/ws?player_token=T&x=%7E~*&&y=+', '/ws?x=%7E~*&&y=+'],
    ['/ws?a=1&player_token=T&b=%zz&player_token=other', '/ws?a=1&b=%zz'],
    ['/a%2Fb/%C3%BC?player_token=T&q=%C3%BC', '/a%2Fb/%C3%BC?q=%C3%BC'],
  ];
  for (const [target, rest] of QUERIES) {
    test(`of the query ${target}, and the rest stays as it was written`, () => {
      expect(take(target)).toMatchObject({ target: rest, token: 'T' });
    });
  }

  test('of the subprotocols', () => {
    const result = take('/ws?room=a%20b', ['game.v1', 'bearer.T']);
    expect(result).toEqual({
      target: '/ws?room=a%20b',
      protocols: ['game.v1'],
      token: 'T',
      token_protocol: 'bearer.T',
    });
  });

  test('of the header Authorization', () => {
    expect(take('/ws', [], { authorization: 'bearer T' })).toMatchObject({ target: '/ws', token: 'T' });
    expect(take('/ws', [], { authorization: 'Basic T' }).token).toBeUndefined();
  });

  test('of nothing that only looks like it', () => {
    const target = '/ws?my_player_token=T&room=token=T';
    expect(take(target)).toMatchObject({ target, token: undefined });
  });
});
