import { expect, test } from 'bun:test';
import { createAcme } from '../../../src/features/certificates/acme.ts';
import { claimDue, insertHosts } from '../../../src/features/certificates/store.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
const DIRECTORY = 'https://ca.example.com/directory';

test('certificates: processes that claim at the same moment get different hosts, and each host once', async () => {
  const { queries } = muster.database;
  for (let round = 0; round < 20; round += 1) {
    const directory = `${DIRECTORY}/${round}`;
    const hosts = ['a', 'b', 'c', 'd'].map((name) => `${name}.example.com`);
    const now = new Date();
    await insertHosts(queries, directory, hosts, now);
    const until = new Date(now.getTime() + 60_000);
    const claim = () => claimDue(queries, { directory, hosts, now, until });
    const claims = await Promise.all([claim(), claim(), claim(), claim()]);
    expect(claims.map((one) => one?.host).toSorted()).toEqual(hosts);
    expect(await claim()).toBeUndefined();
  }
});

test('certificates: an authority that refuses for an hour is not asked again meanwhile, and its reason is logged', async () => {
  const refused: string[] = [];
  using authority = Bun.serve({
    port: 0,
    fetch({ url, method }) {
      const { pathname } = new URL(url);
      const at = (path: string) => new URL(path, url).href;
      if (pathname === '/directory') {
        return Response.json({ newNonce: at('/nonce'), newAccount: at('/account'), newOrder: at('/order') });
      }
      if (pathname === '/nonce') return new Response(null, { headers: { 'replay-nonce': 'bm9uY2U' } });
      refused.push(`${method} ${pathname}`);
      const problem = { type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many accounts of one address' };
      return Response.json(problem, { status: 429, headers: { 'retry-after': '3600' } });
    },
  });
  const events: ServiceEvent[] = [];
  const acme = createAcme({
    database: muster.database,
    clock: muster.clock,
    events: { emit: (event) => void events.push(event) },
    hosts: ['play.example.com'],
    directory: `${authority.url}directory`,
    email: undefined,
    ca_file: undefined,
  });
  await acme.register();
  const { signal } = new AbortController();
  expect([await acme.renewOne(signal), await acme.renewOne(signal)]).toEqual([true, false]);
  const reason = expect.stringContaining('too many accounts of one address');
  expect(events).toMatchObject([{ event: 'certificate_not_issued', host: 'play.example.com', reason, failures: 1 }]);
  expect(refused).toEqual(['POST /account']);
}, 60_000);
