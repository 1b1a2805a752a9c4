import { expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTestService } from '../../support/service.ts';
import { findFreePort } from '../../support/test-ports.ts';
import { makeCertificate } from '../../support/tls.ts';

/** Starts a service with a certificate for names. Returns what it says about names of servers without one. */
async function startWith(names: string[], settings: Record<string, string>) {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'muster-uncovered-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const files = { MUSTER_TLS_CERTIFICATE: join(folder, 'a.crt'), MUSTER_TLS_KEY: join(folder, 'a.key') };
  const { certificate, key } = await makeCertificate(names);
  await writeFile(files.MUSTER_TLS_CERTIFICATE, certificate);
  await writeFile(files.MUSTER_TLS_KEY, key);
  const https = { MUSTER_HTTPS_PORT: String(findFreePort()) };
  const { events } = opened.use(await openTestService({ ...files, ...https, ...settings }));
  return events.filter(({ event }) => event === 'servers_not_covered');
}

test('https: the log says at the start that names of game servers have no certificate, and what to do', async () => {
  const settings = { MUSTER_SERVERS_DOMAIN: 'games.example.com' };
  expect(await startWith(['play.example.com'], settings)).toEqual([
    {
      event: 'servers_not_covered',
      names: '*.games.example.com',
      advice: expect.stringContaining('MUSTER_TLS_CERTIFICATE'),
    },
  ]);
  expect(await startWith(['play.example.com', '*.games.example.com'], settings)).toEqual([]);
  // Without a domain of servers, answers name the servers themselves.
  expect(await startWith(['play.example.com'], {})).toEqual([]);
}, 90_000);
