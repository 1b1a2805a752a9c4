import { expect, test } from 'bun:test';
import { createApi } from '../support/api.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { openSmallS3 } from '../support/objects/small-s3.ts';
import { makeHome, waitUntilReady } from '../support/program.ts';
import { IMMEDIATE_MS, waitFor } from '../support/wait.ts';

test('storage unreachable: a start waits for the bucket, logs the reason, and becomes ready by itself', async () => {
  await using database = await openExternalDatabase();
  await using bucket = await openSmallS3();
  const { hostname: host, port } = new URL(bucket.settings.S3_ENDPOINT ?? '');
  await using proxy = await openTcpProxy({ host, port: Number(port) });
  await proxy.cut();
  const endpoint = `http://127.0.0.1:${proxy.port}`;
  await using home = await makeHome({ ...bucket.settings, S3_ENDPOINT: endpoint, DATABASE_URL: database.url });
  const program = home.launch();
  const api = createApi(home.url);
  const reason = `the object storage cannot be used: the bucket "bucket" at ${endpoint} does not answer (ConnectionRefused)`;
  await waitFor(
    async () => {
      const answer = await api.get('/health/ready').catch(() => undefined);
      return answer?.status === 503 && answer.body.metadata?.reasons?.[0]?.message === reason;
    },
    () => `the program to wait for its storage: ${program.output()}`,
  );
  expect((await api.get('/health/live')).status).toBe(200);
  const refused = await api.get('/matchmaker/regions');
  expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
    503,
    'OBJECTS_UNAVAILABLE',
    '2',
  ]);
  expect(program.output()).toContain('"storage_awaited"');
  await proxy.heal();
  await waitUntilReady(home.url);
  await program.stop('SIGINT');
}, 300_000);

test('storage unreachable: a start that waits for a silent bucket is stopped at once', async () => {
  const connections: unknown[] = [];
  using silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: (socket) => void connections.push(socket), data() {} },
  });
  await using bucket = await openSmallS3();
  const settings = { ...bucket.settings, S3_ENDPOINT: `http://127.0.0.1:${silent.port}` };
  await using home = await makeHome({ ...settings, DATABASE_URL: 'postgres://muster@127.0.0.1:1/muster' });
  const program = home.launch();
  await waitFor(() => connections.length > 0, 'the program to ask its bucket');
  const stopped_at = performance.now();
  expect(await program.stop('SIGTERM')).toBe(0);
  expect(performance.now() - stopped_at).toBeLessThan(IMMEDIATE_MS);
  expect(program.output()).not.toContain('error');
}, 300_000);
