import { beforeAll, describe, expect, test } from 'bun:test';
import { readConfig } from '../../../src/config.ts';
import { StartError } from '../../../src/platform/errors.ts';
import { makeGame } from '../../support/game.ts';
import { SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { PROXY_SECRET } from '../../support/proxy-secret.ts';
import { refusalOf } from '../../support/refusal.ts';
import { makeShownSite } from '../../support/site-visits.ts';
import { shareService } from '../../support/suite.ts';

const SETTINGS = {
  MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN,
  MUSTER_TRUSTED_PROXIES: '127.0.0.1',
  MUSTER_PROXY_SECRET: PROXY_SECRET,
};
const BY_PROXY = { 'muster-proxy-secret': PROXY_SECRET, 'x-forwarded-for': '203.0.113.1' };

const muster = shareService(SETTINGS);
let web: Awaited<ReturnType<typeof startWebServer>>;
beforeAll(async () => {
  web = await startWebServer(muster, await makeGame(muster.api, muster.administrator_token));
}, 300_000);

const send = (path: string, headers: Record<string, string>) => fetch(`${muster.config.local_url}${path}`, { headers });

describe('gateway: a start is refused if the domain of servers has names of', () => {
  const CASES: [name: string, settings: Record<string, string>][] = [
    ['the API', { MUSTER_PUBLIC_URL: 'https://play.example.com' }],
    ['the API, by ACME', { MUSTER_ACME_HOSTS: 'Play.example.com' }],
    ['the API, further ones', { MUSTER_OWN_HOSTS: 'localhost, play.example.com' }],
    ['sites', { MUSTER_SITES_DOMAIN: 'example.com' }],
    ['sites, below', { MUSTER_SITES_DOMAIN: 'sites.example.com' }],
  ];
  for (const [name, settings] of CASES) {
    test(name, () => {
      const read = () => readConfig({ MUSTER_SERVERS_DOMAIN: 'example.com', ...settings });
      expect(refusalOf(StartError, read).message).toContain('MUSTER_SERVERS_DOMAIN');
    });
  }

  test('nothing else', () => {
    const settings = { MUSTER_PUBLIC_URL: 'https://example.com', MUSTER_SITES_DOMAIN: 'notexample.com' };
    expect(readConfig({ MUSTER_SERVERS_DOMAIN: 'example.com', ...settings }).servers_domain).toBe('example.com');
  });
});

describe('gateway: a path leads to a server', () => {
  test('at every name of the API', async () => {
    for (const host of [new URL(muster.config.local_url).host, 'muster.internal']) {
      expect((await send(`/gateway/${web.name}/headers`, { host })).status).toBe(200);
    }
  });

  test('not at the host of a site, whose folder may have the same name', async () => {
    const site = await makeShownSite(muster, { 'index.html': 'home', 'gateway/index.html': 'the folder of the site' });
    expect(await (await site.visit('/gateway/index.html')).text()).toBe('the folder of the site');
    expect((await site.visit(`/gateway/${web.name}/headers`)).status).toBe(404);
  });

  test('not at the host of a server, which gets the path itself', async () => {
    const { path } = (await (
      await send(`/headers?of=/gateway/${web.name}/`, { host: `${web.name}.${SERVERS_DOMAIN}` })
    ).json()) as { path: string };
    expect(path).toBe(`/headers?of=/gateway/${web.name}/`);
    expect((await send(`/gateway/${web.name}/headers`, { host: `${web.name}.${SERVERS_DOMAIN}` })).status).toBe(418);
  });
});

describe('gateway: the protocol in the headers for a server', () => {
  const CASES: [name: string, headers: Record<string, string>, proto: string][] = [
    ['is that of the proxy that is trusted', { ...BY_PROXY, 'x-forwarded-proto': 'https' }, 'https'],
    ['is that of the last of several proxies', { ...BY_PROXY, 'x-forwarded-proto': 'http, HTTPS' }, 'https'],
    ['is that of the connection if the proxy names none', BY_PROXY, 'http'],
    ['is that of the connection if the proxy names another', { ...BY_PROXY, 'x-forwarded-proto': 'gopher' }, 'http'],
    ['is not what a client claims', { 'x-forwarded-proto': 'https' }, 'http'],
  ];
  for (const [name, headers, proto] of CASES) {
    test(name, async () => {
      const answer = await send('/headers', { host: `${web.name}.${SERVERS_DOMAIN}`, ...headers });
      const seen = ((await answer.json()) as { headers: Record<string, string> }).headers;
      expect([seen['x-forwarded-proto'], seen.forwarded?.split('proto=')[1]]).toEqual([proto, proto]);
    });
  }
});
