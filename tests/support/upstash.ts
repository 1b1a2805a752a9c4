import { createApp } from '@humanwhocodes/upstash-redis-server';

const TOKEN = 'a token of the tests';

/** A service with the API of Upstash, over a Redis. */
export interface TestUpstash extends Disposable {
  url: string;
  token: string;
  /** Sets its answer from now on; undefined for that of Redis. */
  answer: (() => Response | Promise<Response>) | undefined;
}

/** Opens an Upstash API on a Redis. Upstash runs scripts with a flag that Redis refuses, so it is removed. */
export function openTestUpstash(redis_url: string): TestUpstash {
  const app = createApp({ token: TOKEN, redisUrl: redis_url });
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (upstash.answer) return await upstash.answer();
      if (request.headers.get('authorization') !== `Bearer ${TOKEN}`) return new Response('{}', { status: 401 });
      const body = (await request.text()).replaceAll(/#!lua flags=allow-key-locking\\n/g, '');
      return await app.fetch(new Request(request.url, { method: 'POST', headers: request.headers, body }));
    },
  });
  const upstash: TestUpstash = {
    url: `http://127.0.0.1:${server.port}`,
    token: TOKEN,
    answer: undefined,
    [Symbol.dispose]: () => void server.stop(true),
  };
  return upstash;
}
