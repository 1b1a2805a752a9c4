import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { hostname } from 'node:os';
import { decode, encode } from 'dns-packet';
import { sql } from 'drizzle-orm';
import { createReservedHosts } from '../../../src/features/namespaces/domain-rules.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { type NameServer, openNameServer } from '../../support/network/name-server.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { makeShownSite, type ShownSite } from '../../support/site-visits.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

/** Published TXT records, by name. */
const records = new Map<string, string[]>();
let name_server: NameServer;
let opened: TestService;
let site: ShownSite;
let other: ShownSite;
beforeAll(async () => {
  name_server = await openNameServer((name, type) => (type === 'TXT' ? records.get(name) : undefined));
  opened = await openTestService({
    MUSTER_SERVER_HOST: 'rooms.example.com',
    MUSTER_OWN_HOSTS: 'api.example.net, Old-Name.example.net',
    MUSTER_DOMAINS_ALLOW: '*.free.example, once.example, example.com, *.example.net',
    MUSTER_NAME_SERVERS: name_server.address,
  });
  [site, other] = [await makeSite(), await makeSite()];
});
afterAll(async () => {
  await opened[Symbol.asyncDispose]();
  name_server[Symbol.dispose]();
});
beforeEach(() => records.clear());

const makeSite = () => makeShownSite(opened, { 'index.html': crypto.randomUUID() });
const localUrl = () => opened.config.local_url;
const add = (to: ShownSite, domain: string, { local_url } = opened.config) =>
  opened.api.call('POST', `${local_url}${to.namespace}/domains`, { token: to.cloud_token, body: { domain } });
const prove = (domain: string, namespace_id: string) =>
  records.set(`_muster.${domain}`, ['other text', `muster-namespace=${namespace_id}`]);
/** Returns what a domain shows: the site, or the API. */
const show = async (domain: string) => {
  const response = await fetch(`${localUrl()}/`, { headers: { host: domain } });
  return response.headers.get('content-type')?.includes('json') ? 'API' : await response.text();
};
const indexOf = async ({ visit }: ShownSite) => await (await visit('/')).text();
const domainsOf = async ({ namespace, cloud_token: token }: ShownSite) => {
  const answer = await opened.api.call('GET', `${localUrl()}${namespace}`, { token });
  return answer.body.namespace.config.cdn.domains.map(({ domain }: { domain: string }) => domain);
};
/** Adds a domain without a proof, as earlier releases did. */
async function addUnproven(domain: string, { namespace_id }: ShownSite): Promise<void> {
  await using database = openDatabase(opened.database_address, 1);
  await database.queries.execute(
    sql`insert into namespace_domains (domain, namespace_id, create_ts) values (${domain}, ${namespace_id}, now())`,
  );
}

describe("domains: the service's own names cannot be added, not even if the operator allows them or they are proven,", () => {
  const OWN = [
    'rooms.example.com',
    'sites.localhost',
    'x.sites.localhost',
    'api.example.net',
    'old-name.example.net',
    'site.localhost',
    `${hostname().split('.')[0]}.local`,
    '203.0.113.1',
  ];
  for (const domain of OWN) {
    test(domain, async () => {
      prove(domain.toLowerCase(), site.namespace_id);
      expect(outcomeOf(await add(site, domain))).toBe('400 CDN_INVALID_DOMAIN');
    });
  }

  test('as the public address, a listening address, or below the domain of sites', () => {
    const { isReserved, isOwn } = createReservedHosts('machine1', {
      public_url: 'https://play.example.com',
      local_url: 'http://node1.example.com:8080',
      host: 'node1.example.com',
      server_host: 'rooms.example.com',
      own_hosts: [],
      sites_domain: 'example.net',
      servers_domain: 'servers.example.org',
    });
    for (const name of ['play.example.com', 'PLAY.example.com.', 'node1.example.com', 'machine1']) {
      expect([isReserved(name), isOwn(name)]).toEqual([true, true]);
    }
    for (const name of [
      'example.net',
      'any.example.net',
      'any.servers.example.org',
      '[::1]',
      '127.0.0.1',
      'localhost',
      'name',
    ]) {
      expect([isReserved(name), isOwn(name)]).toEqual([true, false]);
    }
    for (const name of ['example.com', 'x.play.example.com', 'myexample.net']) expect(isReserved(name)).toBe(false);
  });

  test('also if an earlier release added one: it stays the service', async () => {
    await addUnproven('api.example.net', site);
    const headers = { host: 'api.example.net' };
    expect((await fetch(`${localUrl()}/health/live`, { headers })).status).toBe(200);
    const find = await opened.api.call('POST', `${localUrl()}/matchmaker/lobbies/find`, {
      headers: { origin: 'https://api.example.net' },
      body: { game_modes: ['default'] },
    });
    expect(outcomeOf(find)).toBe('401 API_UNAUTHORIZED');
  });
});

describe('domains: a proof by DNS', () => {
  test('is required: without it a domain is refused with the record to add', async () => {
    const refused = await add(site, 'mine.example.org');
    const record = { name: '_muster.mine.example.org', type: 'TXT', value: `muster-namespace=${site.namespace_id}` };
    expect(outcomeOf(refused)).toBe('400 CDN_DOMAIN_NOT_PROVEN');
    expect(refused.body.metadata).toEqual({ record });
    expect(refused.body.message).toContain(`${record.name} of type TXT with the text ${record.value}`);
    expect([await show('mine.example.org'), await domainsOf(site)]).not.toContain('mine.example.org');

    prove('mine.example.org', other.namespace_id);
    expect(outcomeOf(await add(site, 'mine.example.org'))).toBe('400 CDN_DOMAIN_NOT_PROVEN');

    records.set(record.name, [record.value]);
    expect(outcomeOf(await add(site, 'Mine.example.org'))).toBe('200');
    expect(await show('mine.example.org')).toBe(await indexOf(site));
    // Once the domain is added, DNS is not asked again.
    records.clear();
    expect(outcomeOf(await add(site, 'mine.example.org'))).toBe('200');
  });

  test('is the only way to take over the domain of another namespace', async () => {
    await addUnproven('old.free.example', other);
    const refused = await add(site, 'old.free.example');
    expect(outcomeOf(refused)).toBe('400 CLOUD_HOSTNAME_TAKEN');
    expect(refused.body.metadata.record.name).toBe('_muster.old.free.example');
    expect(await show('old.free.example')).toBe(await indexOf(other));

    prove('old.free.example', site.namespace_id);
    expect(outcomeOf(await add(site, 'old.free.example'))).toBe('200');
    expect(await show('old.free.example')).toBe(await indexOf(site));
    expect([await domainsOf(site), await domainsOf(other)].map((of) => of.includes('old.free.example'))).toEqual([
      true,
      false,
    ]);
    // The game that lost the domain sees it in its audit log, and nothing about the game that has it now.
    const path = `/cloud/games/${other.game_id}/audit-log`;
    const { entries } = await opened.api.ok('GET', path, { token: other.cloud_token });
    expect(entries[0]).toEqual({
      entry_id: expect.any(String),
      create_ts: expect.any(String),
      operation: 'loseDomain',
      caller: { kind: 'other_game' },
      address: '',
      game_id: other.game_id,
      namespace_id: other.namespace_id,
      details: { domain: 'old.free.example' },
      outcome: 'done',
    });
  });

  test('in two namespaces at once adds the domain to one of them', async () => {
    const third = await makeSite();
    await addUnproven('wanted.example.org', other);
    const both = [`muster-namespace=${site.namespace_id}`, `muster-namespace=${third.namespace_id}`];
    records.set('_muster.wanted.example.org', both);
    await Promise.all([add(site, 'wanted.example.org'), add(third, 'wanted.example.org')]);
    const holders = (await Promise.all([site, other, third].map(domainsOf))).flat();
    expect(holders.filter((domain) => domain === 'wanted.example.org')).toHaveLength(1);
    expect(await show('wanted.example.org')).not.toBe(await indexOf(other));
  });

  test('cannot be checked without a name server: the domain is neither added nor refused as unproven', async () => {
    const silent = createSocket('udp4');
    await new Promise<void>((resolve) => silent.bind(0, '127.0.0.1', resolve));
    const settings = { MUSTER_NAME_SERVERS: `127.0.0.1:${silent.address().port}`, MUSTER_DOMAINS_ALLOW: 'x.example' };
    {
      await using deaf = await openTestService(settings, { database_of: opened });
      const answer = await add(site, 'quiet.example.org', deaf.config);
      expect(outcomeOf(answer)).toBe('503 CDN_DOMAIN_NOT_CHECKED');
      expect(answer.headers.get('retry-after')).not.toBeNull();
    }
    silent.close();
  });

  test('of a game whose name server is silent delays no proof of another game', async () => {
    // The name server does not answer for one game.
    const answering = createSocket('udp4');
    const questions = new Set<string>();
    answering.on('message', (message, { port, address }) => {
      const { id, questions: [question] = [] } = decode(message);
      if (!question) return;
      questions.add(question.name);
      if (question.name.includes('.silent.')) return;
      const answers = [
        { type: 'TXT', name: question.name, ttl: 0, data: `muster-namespace=${other.namespace_id}` },
      ] as const;
      answering.send(
        encode({ type: 'response', id: id ?? 0, questions: [question], answers: [...answers] }),
        port,
        address,
      );
    });
    await new Promise<void>((resolve) => answering.bind(0, '127.0.0.1', resolve));
    const name_servers = `127.0.0.1:${answering.address().port}`;
    const settings = { MUSTER_NAME_SERVERS: name_servers, MUSTER_DOMAINS_ALLOW: 'x.example' };
    {
      await using service = await openTestService(settings, { database_of: opened });
      const waiting = Array.from({ length: 40 }, (_, number) =>
        add(site, `d${number}.silent.example.org`, service.config),
      );
      await waitFor(() => questions.size === 4, 'the lookups of the first game');
      expect(outcomeOf(await add(other, 'quick.example.org', service.config))).toBe('200');
      expect(questions.size).toBe(5);
      const codes = new Set((await Promise.all(waiting)).map(outcomeOf));
      expect([...codes]).toEqual(['503 CDN_DOMAIN_NOT_CHECKED']);
    }
    answering.close();
  });
});

describe('domains: allowed by the operator', () => {
  test('a domain needs no proof and belongs to the first namespace that adds it', async () => {
    for (const domain of ['a.free.example', 'b.c.free.example', 'once.example']) {
      expect(outcomeOf(await add(site, domain))).toBe('200');
      expect(outcomeOf(await add(other, domain))).toBe('400 CLOUD_HOSTNAME_TAKEN');
    }
    for (const domain of ['free.example', 'notfree.example', 'x.once.example']) {
      expect(outcomeOf(await add(site, domain))).toBe('400 CDN_DOMAIN_NOT_PROVEN');
    }
  });

  test('for one namespace, a domain can be taken over by that namespace only', async () => {
    await addUnproven('given.example.org', other);
    const settings = {
      MUSTER_NAME_SERVERS: name_server.address,
      MUSTER_DOMAINS_ALLOW: `given.example.org=${site.namespace_id.toUpperCase()}, *.given.example=${site.namespace_id}`,
    };
    await using giving = await openTestService(settings, { database_of: opened });
    expect(outcomeOf(await add(other, 'x.given.example', giving.config))).toBe('400 CDN_DOMAIN_NOT_PROVEN');
    expect(outcomeOf(await add(site, 'given.example.org', giving.config))).toBe('200');
    expect(await show('given.example.org')).toBe(await indexOf(site));
  });
});
