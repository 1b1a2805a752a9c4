import { expect, test } from 'bun:test';
import { ApiCaller } from '../../src/cli/api-caller.ts';
import { LobbyEnding } from '../../src/cli/dev/lobby-ending.ts';
import type { Scope } from '../../src/cli/session.ts';
import { waitFor } from '../support/wait.ts';

const NAMESPACE = { namespace_id: 'n', name_id: 'prod', display_name: '', version_id: '', create_ts: '' };
const SCOPE: Scope = {
  game: { game_id: 'g', name_id: '', display_name: '', namespaces: [], versions: [], available_regions: [] },
  namespace: NAMESPACE,
};

/** The lobbies of a service, which refuses the requests that a test names. */
function openLobbies(players: Record<string, number>) {
  const running = new Map(Object.entries(players));
  const refused = new Set<string>();
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ method, url }) {
      const [lobby_id = '', verb] = new URL(url).pathname.split('/matchmaker/lobbies/').at(-1)?.split('/') ?? [];
      if (refused.has(`${method} ${lobby_id}`))
        return Response.json({ code: 'BUSY', message: 'busy' }, { status: 503 });
      if (method === 'DELETE' && verb === undefined) running.delete(lobby_id);
      const lobbies = [...running].map(([id, total_player_count]) => ({
        lobby_id: id,
        is_outdated: true,
        total_player_count,
      }));
      return Response.json(method === 'GET' ? { lobbies } : {});
    },
  });
  const ended: number[] = [];
  const errors: unknown[] = [];
  const ending = new LobbyEnding({ api: new ApiCaller(`http://127.0.0.1:${server.port}`, 'token') }, SCOPE, {
    signal: new AbortController().signal,
    onEnded: (count) => ended.push(count),
    onError: (error) => errors.push(error),
  });
  return { running, refused, ended, errors, ending, [Symbol.asyncDispose]: () => server.stop(true) };
}

const all = () => true;

test('dev: a lobby that could not be closed is ended by the next change, and all others end at once', async () => {
  await using service = openLobbies({ played: 1, other: 2, empty: 0 });
  service.refused.add('PUT played');
  await expect(service.ending.end(all)).rejects.toThrow('busy');
  await service.ending.waitForEnds();
  expect([[...service.running.keys()], service.ended]).toEqual([['played'], [1]]);

  service.refused.clear();
  expect(await service.ending.end(all)).toEqual({ ended_count: 0, closed_count: 1 });
  await service.ending.waitForEnds();
  expect([service.running.size, service.ended, service.errors]).toEqual([0, [1, 1], []]);
});

test('dev: a lobby whose end was refused after the notice is ended by the next change', async () => {
  await using service = openLobbies({ played: 1, other: 2 });
  service.refused.add('DELETE played');
  expect(await service.ending.end(all)).toEqual({ ended_count: 0, closed_count: 2 });
  await service.ending.waitForEnds();
  expect([[...service.running.keys()], service.ended, service.errors]).toEqual([['played'], [1], [expect.any(Error)]]);

  service.refused.clear();
  expect(await service.ending.end(all)).toEqual({ ended_count: 0, closed_count: 1 });
  await waitFor(() => service.running.size === 0, 'the lobby to end');
  await service.ending.waitForEnds();
});
