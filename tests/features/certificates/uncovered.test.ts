import { expect, test } from 'bun:test';
import { findFreePort } from '../../support/network/test-ports.ts';
import { writeCertificate } from '../../support/network/tls.ts';
import { openTestService } from '../../support/service.ts';

/** Starts a service with a certificate for names. Returns what it says about names of servers without one. */
async function startWith(names: string[], settings: Record<string, string>) {
  const { files } = await writeCertificate(names);
  const https = { MUSTER_HTTPS_PORT: String(findFreePort()) };
  await using muster = await openTestService({ ...files, ...https, ...settings });
  return muster.events.filter(({ event }) => event === 'servers_not_covered');
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
}, 300_000);
