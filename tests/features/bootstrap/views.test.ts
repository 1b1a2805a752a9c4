import { afterAll, beforeAll, expect, test } from 'bun:test';
import { toBootstrap } from '../../../src/features/bootstrap/wire.ts';
import { openTestService, type TestService } from '../../support/service.ts';

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());

test('bootstrap: a caller without a token gets what the service is and where its parts are', async () => {
  expect(await opened.api.ok('GET', '/cloud/bootstrap')).toEqual({
    cluster: 'oss',
    access: 'private',
    domains: { cdn: 'sites.localhost', job: '127.0.0.1', main: new URL(opened.config.public_url).host },
    origins: { hub: opened.config.public_url },
    captcha: {},
    login_methods: { email: false, access_token: true },
    deploy_hash: expect.any(String),
  });
});

test.each([
  ['servers.example.com', 'servers.example.com'],
  ['servers.localhost', '203.0.113.9'],
  ['localhost', '203.0.113.9'],
])('bootstrap: with servers below %s, the domain of servers is %s', (servers_domain, job) => {
  const names = {
    public_url: 'https://play.example.com',
    server_host: '203.0.113.9',
    sites_domain: 'sites.example.com',
  };
  const { domains } = toBootstrap({ ...names, servers_domain, version: '1', shared_captcha_keys: {} });
  expect(domains).toEqual({ cdn: 'sites.example.com', job, main: 'play.example.com' });
});

test('bootstrap: a caller without a token gets what servers may use, by tier', async () => {
  const { tiers } = await opened.api.ok('GET', '/cloud/region-tiers');
  expect(tiers.map(({ tier_name_id }: { tier_name_id: string }) => tier_name_id)).toEqual([
    'basic-1d16',
    'basic-1d8',
    'basic-1d4',
    'basic-1d2',
    'basic-1d1',
    'basic-2d1',
    'basic-4d1',
  ]);
  expect(tiers[2]).toEqual({
    tier_name_id: 'basic-1d4',
    rivet_cores_numerator: 1,
    rivet_cores_denominator: 4,
    cpu: 250,
    memory: 459,
    disk: 2_048,
    bandwidth: 500,
    price_per_second: 0,
  });
});
