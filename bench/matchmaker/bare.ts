// The minimum cost of a find: reads its body, checks it (by Elysia with the shape of Muster's route, or by hand), and
// always returns the same answer.
import { argv } from 'node:process';
import { Elysia } from 'elysia';
import { FindBody } from '../../src/features/lobbies/wire.ts';

const [kind, answer = ''] = argv.slice(2);
const HEADERS = { headers: { 'content-type': 'application/json;charset=utf-8' } };

if (kind === 'elysia') {
  const app = new Elysia().post('/find', () => new Response(answer, HEADERS), { body: FindBody });
  app.listen({ hostname: '127.0.0.1', port: 0 });
  console.log(app.server?.port);
} else {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = await request.json();
      return Array.isArray(body.game_modes)
        ? new Response(answer, HEADERS)
        : new Response('"game_modes" is missing', { status: 400 });
    },
  });
  console.log(server.port);
}

// The end of standard input means that the bench has ended.
for await (const _ of Bun.stdin.stream());
process.exit();
