import { READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { printTable, show } from '../report.ts';
import type { Arena } from './arena.ts';
import type { Callers } from './calls.ts';
import type { Plan } from './plan.ts';
import { measureCalls } from './targets.ts';

const CONCURRENCY = 4;
const CREATING_S = 60;

/** Measures how long lobbies that players create take to be ready, beside the same processes started by hand. */
export async function measureCreates(
  opened: AsyncDisposableStack,
  arena: Arena,
  callers: Callers,
  { creates: count }: Plan,
): Promise<void> {
  await arena.lobbies.empty({ lobbies: 1 });
  await callers.open(arena.port, CONCURRENCY);
  const request = { headers: arena.headers, body: JSON.stringify({ game_mode: 'default' }) };
  const calls = { path: '/matchmaker/lobbies/create', requests: [request], seconds: CREATING_S, requests_max: count };
  const { per_second } = await measureCalls({ pid: arena.program.pid }, callers, calls);
  const [mine, by_hand] = [1 / per_second, (await startByHand(opened, count)) / count];
  printTable(`Lobbies that players create, ${CONCURRENCY} at a time, until they are ready`, [
    ['', 'ms each', 'of by hand'],
    ['the same process started by hand', show.milliseconds(by_hand * 1_000), show.ratio(1)],
    ['create', show.milliseconds(mine * 1_000), show.ratio(mine / by_hand)],
  ]);
}

/** Returns the seconds until this many rooms have called their API. */
async function startByHand(opened: AsyncDisposableStack, count: number): Promise<number> {
  const readyByToken = new Map<string, () => void>();
  const server = opened.adopt(
    Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        readyByToken.get(request.headers.get('authorization') ?? '')?.();
        return new Response('{}');
      },
    }),
    (one) => one.stop(true),
  );
  const rooms = opened.adopt([] as Bun.Subprocess[], (all) => {
    for (const room of all) room.kill('SIGKILL');
  });
  const startNext = async () => {
    while (rooms.length < count) {
      const token = `room-${rooms.length}`;
      const ready = Promise.withResolvers<void>();
      readyByToken.set(`Bearer ${token}`, ready.resolve);
      const env = { SERVICE_API_ENDPOINT: `http://127.0.0.1:${server.port}`, SERVICE_TOKEN: token };
      rooms.push(Bun.spawn([process.execPath, '-e', READY_SOURCE], { env, stdout: 'ignore', stderr: 'ignore' }));
      await ready.promise;
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, startNext));
  return (performance.now() - started) / 1_000;
}
