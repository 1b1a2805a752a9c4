import { findFreePort } from '../tests/support/network/test-ports.ts';
import { measure } from './samples.ts';

/** Starts the script of a room without Muster. Returns the milliseconds until it has called ready. */
export async function startByHand(script: string): Promise<number> {
  const ready = Promise.withResolvers<void>();
  const port = findFreePort();
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    fetch() {
      ready.resolve();
      return new Response();
    },
  });
  const env = { SERVICE_API_ENDPOINT: `http://127.0.0.1:${port}`, SERVICE_TOKEN: '' };
  const time = await measure(async () => {
    const room = Bun.spawn([process.execPath, script], { env, stdout: 'ignore', stderr: 'ignore' });
    await ready.promise;
    room.kill('SIGKILL');
  });
  await server.stop(true);
  return time;
}
