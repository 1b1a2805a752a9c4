import { expect, test } from 'bun:test';
import { createAcme } from '../../../src/features/certificates/acme.ts';
import { claimDue, insertChallenge, insertHosts } from '../../../src/features/certificates/store.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { openTestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

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

test('certificates: a stop during an order is no failure, and the host is due at once', async () => {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<Response>();
  using authority = Bun.serve({
    port: 0,
    fetch() {
      asked.resolve();
      return released.promise;
    },
  });
  const { queries } = muster.database;
  const directory = `${authority.url}directory`;
  const hosts = ['play.example.com'];
  const { database, clock } = muster;
  const events: ServiceEvent[] = [];
  const emit = (event: ServiceEvent) => void events.push(event);
  const acme = createAcme({
    database,
    clock,
    events: { emit },
    hosts,
    directory,
    email: undefined,
    ca_file: undefined,
  });
  await acme.register();
  const stop = new AbortController();
  const renewal = acme.renewOne(stop.signal);
  await asked.promise;
  stop.abort();
  expect([await renewal, events]).toEqual([false, []]);
  const now = clock.now();
  const claim = await claimDue(queries, { directory, hosts, now, until: new Date(now.getTime() + 60_000) });
  expect(claim).toMatchObject({ host: 'play.example.com', failures: 0 });
  released.resolve(new Response(null, { status: 500 }));
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
});

test('certificates: requests for challenges of a host share a query in each second, and find a new challenge after it', async () => {
  const { database, clock } = muster;
  let reads = 0;
  const counting = new Proxy(database.queries, {
    get(queries, name: keyof typeof database.queries) {
      if (name === 'select') reads += 1;
      return queries[name].bind(queries);
    },
  });
  const host = 'play.example.com';
  const acme = createAcme({
    database: { ...database, queries: counting },
    clock,
    events: { emit() {} },
    hosts: [host],
    directory: DIRECTORY,
    email: undefined,
    ca_file: undefined,
  });
  const tokens = Array.from({ length: 64 }, () => crypto.randomUUID());
  const answers = await Promise.all(tokens.map((token) => acme.answerOf({ host, token })));
  expect([new Set(answers), reads]).toEqual([new Set([undefined]), 1]);
  const token = crypto.randomUUID();
  const expire_ts = new Date(clock.now().getTime() + 60_000);
  await insertChallenge(database.queries, { token, host, answer: 'the answer', expire_ts });
  await waitFor(async () => (await acme.answerOf({ host, token })) === 'the answer', 'the answer');
  expect(await acme.answerOf({ host, token: crypto.randomUUID() })).toBeUndefined();
});

test('certificates: challenges of hosts that the authority has no order for reach sites and game servers', async () => {
  const http_port = findFreePort();
  await using _ = await openTestService({
    MUSTER_ACME_HOSTS: 'play.example.com',
    // Not there.
    MUSTER_ACME_DIRECTORY: 'https://127.0.0.1:1/directory',
    MUSTER_HTTPS_PORT: String(findFreePort()),
    MUSTER_HTTP_PORT: String(http_port),
    MUSTER_PUBLIC_URL: 'http://127.0.0.1:1',
  });
  const ask = async (host: string) => {
    const url = `http://127.0.0.1:${http_port}/.well-known/acme-challenge/${'A'.repeat(43)}`;
    return await (await fetch(url, { headers: { host } })).text();
  };
  expect(await ask('play.example.com')).toBe('There is no such challenge.\n');
  expect(await ask('other.example.com')).not.toContain('There is no such challenge.');
});
