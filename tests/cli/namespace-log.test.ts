import { expect, test } from 'bun:test';
import { followServerLogs } from '../../src/cli/namespace-log.ts';
import type { Place, Session } from '../../src/cli/session.ts';

test('logs of a namespace: an answer that is not understood is reported, not taken for the end', async () => {
  const api = { get: async () => ({ servers: [] }) };
  const place = { game: { game_id: 'game' }, namespace: { namespace_id: 'namespace' } } as unknown as Place;
  const following = followServerLogs({
    session: { api } as unknown as Session,
    place,
    with_running: false,
    signal: new AbortController().signal,
    onLine: () => {},
    onEnd: () => {},
    onSkipped: () => {},
  });
  await expect(following).rejects.toThrow(TypeError);
});
