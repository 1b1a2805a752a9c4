import { expect, test } from 'bun:test';
import { followServerLogs } from '../../src/cli/namespace-log.ts';
import type { Scope, Session } from '../../src/cli/session.ts';

test('logs of a namespace: an answer that is not understood is reported, not taken for the end', async () => {
  const api = { get: async () => ({ servers: [] }) };
  const scope = { game: { game_id: 'game' }, namespace: { namespace_id: 'namespace' } } as unknown as Scope;
  const following = followServerLogs({
    session: { api } as unknown as Session,
    scope,
    with_running: false,
    signal: new AbortController().signal,
    onLine: () => {},
    onEnd: () => {},
    onSkipped: () => {},
  });
  await expect(following).rejects.toThrow(TypeError);
});
