// The minimum cost of a long poll on Elysia: a route that reads the caller's headers, notices when the client
// disconnects and answers with Muster's headers. It checks no token, counts nothing and reads nothing.
import { argv } from 'node:process';
import { Elysia } from 'elysia';

const [template = ''] = argv.slice(2);
const numbers = new Map<string, number>();
const waiting = new Map<string, (() => void)[]>();

async function answer(request: Request, topic: string, index: string): Promise<Response> {
  const { headers, signal } = request;
  if (headers.get('origin') !== null || headers.get('authorization') === null) return new Response('', { status: 401 });
  app.server?.timeout(request, 120);
  if (index === String(numbers.get(topic) ?? 0)) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const waiters = waiting.get(topic) ?? [];
    waiting.set(topic, waiters);
    waiters.push(wake);
    signal.addEventListener('abort', wake);
    await promise;
    signal.removeEventListener('abort', wake);
  }
  return new Response(template.replace('NUMBER', String(numbers.get(topic) ?? 0)), {
    headers: {
      'content-type': 'application/json;charset=utf-8',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      vary: 'Origin',
      'ratelimit-limit': '12000',
      'ratelimit-remaining': '11999',
      'ratelimit-reset': '10',
      'rvt-ray-id': Bun.randomUUIDv7(),
    },
  });
}

const app = new Elysia({ strictPath: true, serve: { idleTimeout: 120 } });
app.get('/:topic', ({ request, params: { topic } }) => {
  const { url } = request;
  return answer(request, topic, url.includes('?') ? url.slice(url.lastIndexOf('.') + 1) : '');
});
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(app.server?.port);

for await (const line of console) {
  const [scenario, count, number] = line.split(' ');
  for (let topic = 0; topic < Number(count); topic += 1) {
    const name = `${scenario}:${topic}`;
    numbers.set(name, Number(number));
    const waiters = waiting.get(name) ?? [];
    waiting.delete(name);
    for (const wake of waiters) wake();
  }
}
// The end of standard input means that the bench has ended.
process.exit();
