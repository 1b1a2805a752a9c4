import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { openTls } from '../../support/network/tls.ts';
import { openPebble, type Pebble, WITHOUT_PEBBLE } from '../../support/pebble.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

if (WITHOUT_PEBBLE !== undefined) console.log(`Not tried, because ${WITHOUT_PEBBLE}: certificates by ACME.`);

const [PLAY, SITE] = ['play.example.com', 'site.example.com'];
const YEAR_MS = 365 * 24 * 3_600_000;

describe.skipIf(WITHOUT_PEBBLE !== undefined)('ACME', () => {
  let pebble: Pebble;
  beforeAll(async () => {
    pebble = await openPebble();
  });
  afterAll(async () => await pebble[Symbol.asyncDispose]());

  /** Opens a service that gets certificates from the authority. Only one process can have the port of the proof. */
  async function open(hosts: string[], { http_port = pebble.http_port, database_of }: OpenOptions = {}) {
    const https_port = findFreePort();
    const port = findFreePort();
    const settings = {
      MUSTER_PORT: String(port),
      MUSTER_PUBLIC_URL: `http://127.0.0.1:${port}`,
      MUSTER_ACME_HOSTS: hosts.join(','),
      MUSTER_ACME_DIRECTORY: pebble.directory,
      MUSTER_ACME_CA: pebble.ca_file,
      MUSTER_HTTPS_PORT: String(https_port),
      MUSTER_HTTP_PORT: String(http_port),
    };
    return Object.assign(await openTestService(settings, database_of && { database_of }), { https_port });
  }

  async function certificateAt(port: number, host: string): Promise<X509Certificate | undefined> {
    const socket = await openTls(port, host).catch(() => undefined);
    const raw = socket?.getPeerCertificate().raw;
    socket?.destroy();
    return raw && new X509Certificate(raw);
  }

  const eventsNamed = <Name extends ServiceEvent['event']>({ events }: TestService, name: Name) =>
    events.filter((event): event is Extract<ServiceEvent, { event: Name }> => event.event === name);

  test('each host gets a certificate of its own, and https opens with it', async () => {
    await using muster = await open([PLAY, SITE]);
    const names = await waitFor(async () => {
      const all = await Promise.all([PLAY, SITE].map((host) => certificateAt(muster.https_port, host)));
      const found = all.map((one) => one?.subjectAltName);
      return found[1] === `DNS:${SITE}` && found;
    }, 'both certificates');
    expect(names).toEqual([`DNS:${PLAY}`, `DNS:${SITE}`]);
    expect(
      eventsNamed(muster, 'certificate_issued')
        .map(({ host }) => host)
        .sort(),
    ).toEqual([PLAY, SITE]);
    expect(eventsNamed(muster, 'certificate_not_issued')).toEqual([]);
  }, 300_000);

  test('of two processes, one orders a certificate, both serve it, either serves the proof, and the next start orders none', async () => {
    // The authority requests the proof at a port that the first process does not have.
    await using first = await open([PLAY], { http_port: findFreePort() });
    await waitFor(() => eventsNamed(first, 'certificate_not_issued')[0], 'the refusal of the authority');
    // Before the clock is changed: otherwise the first process might order again while nothing serves the proof.
    await using second = await open([PLAY], { database_of: first });
    first.clock.advance(5 * 60_000);
    const both = await waitFor(async () => {
      const all = await Promise.all([first, second].map(({ https_port }) => certificateAt(https_port, PLAY)));
      return all[0] && all[1] && all;
    }, 'both to serve');
    expect(both[0]?.fingerprint256).toBe(both[1]?.fingerprint256);
    expect([...eventsNamed(first, 'certificate_issued'), ...eventsNamed(second, 'certificate_issued')]).toHaveLength(1);
    await using third = await open([PLAY], { database_of: first, http_port: findFreePort() });
    expect((await certificateAt(third.https_port, PLAY))?.fingerprint256).toBe(both[0]?.fingerprint256);
    expect(eventsNamed(third, 'certificate_issued')).toEqual([]);
  }, 300_000);

  test('a certificate is renewed after two thirds of its lifetime', async () => {
    await using muster = await open([PLAY]);
    const first = await waitFor(() => certificateAt(muster.https_port, PLAY), 'the certificate');
    muster.clock.advance(4 * YEAR_MS);
    // The loop checks every minute.
    await using other = await open([PLAY], { database_of: muster, http_port: findFreePort() });
    await waitFor(
      () => eventsNamed(other, 'certificate_issued')[0] ?? eventsNamed(muster, 'certificate_issued')[1],
      'the renewal',
    );
    const renewed = await waitFor(async () => {
      const now = await certificateAt(muster.https_port, PLAY);
      return now && now.fingerprint256 !== first.fingerprint256 && now;
    }, 'the new certificate');
    expect(renewed.subjectAltName).toBe(`DNS:${PLAY}`);
  }, 300_000);

  test('an account that the authority has forgotten is made again', async () => {
    await using muster = await open([PLAY]);
    await waitFor(() => eventsNamed(muster, 'certificate_issued')[0], 'the certificate');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const url = new URL('/my-account/forgotten', pebble.directory).href;
    await using database = openDatabase(muster.database_address, 1);
    await database.queries.execute(sql`update acme_accounts set key = ${key}, url = ${url}`);
    muster.clock.advance(4 * YEAR_MS);
    // The loop checks every minute.
    await using other = await open([PLAY], { database_of: muster, http_port: findFreePort() });
    await waitFor(
      () => eventsNamed(other, 'certificate_issued')[0] ?? eventsNamed(muster, 'certificate_issued')[1],
      'the renewal',
    );
  }, 300_000);

  test('a host that the authority cannot reach is logged, and others get their certificates', async () => {
    const missing = 'missing.example.com';
    await pebble.setMissing(missing, true);
    await using muster = await open([missing, PLAY]);
    const [refused] = await waitFor(() => {
      const found = eventsNamed(muster, 'certificate_not_issued');
      return found.length > 0 && eventsNamed(muster, 'certificate_issued').length > 0 && found;
    }, 'both outcomes');
    expect(refused).toMatchObject({ host: missing, failures: 1, retry_in_ms: 300_000 });
    expect(refused?.reason).toContain(missing);
    await waitFor(() => certificateAt(muster.https_port, PLAY), 'https to open');
  }, 300_000);

  test('a challenge that is not in progress is not found, and is no redirect', async () => {
    await using muster = await open([PLAY]);
    await waitFor(() => eventsNamed(muster, 'certificate_issued')[0], 'the certificate');
    const ask = async (token: string) => {
      const url = `http://127.0.0.1:${pebble.http_port}/.well-known/acme-challenge/${token}`;
      const answer = await fetch(url, { headers: { host: PLAY }, redirect: 'manual' });
      return answer.status;
    };
    const many = await Promise.all(Array.from({ length: 64 }, () => ask('A'.repeat(43))));
    expect(new Set(many)).toEqual(new Set([404]));
    expect([await ask('A'.repeat(43)), await ask('..'), await ask("'")]).toEqual([404, 308, 308]);
    // Other hosts are those of sites and game servers.
    const foreign = await fetch(`http://127.0.0.1:${pebble.http_port}/.well-known/acme-challenge/${'A'.repeat(43)}`, {
      headers: { host: 'other.example.com' },
    });
    expect(await foreign.text()).not.toContain('There is no such challenge.');
  }, 300_000);

  test('a challenge that is added while many ask for others is found', async () => {
    await using muster = await open([PLAY]);
    await waitFor(() => eventsNamed(muster, 'certificate_issued')[0], 'the certificate');
    const url = `http://127.0.0.1:${pebble.http_port}/.well-known/acme-challenge`;
    let is_over = false;
    const flood = (async () => {
      while (!is_over) await (await fetch(`${url}/${'B'.repeat(43)}`, { headers: { host: PLAY } })).text();
    })();
    muster.clock.advance(4 * YEAR_MS);
    // The loop checks every minute.
    await using other = await open([PLAY], { database_of: muster, http_port: findFreePort() });
    await waitFor(
      () => eventsNamed(other, 'certificate_issued')[0] ?? eventsNamed(muster, 'certificate_issued')[1],
      'the renewal',
    );
    is_over = true;
    await flood;
    expect([muster, other].flatMap((one) => eventsNamed(one, 'certificate_not_issued'))).toEqual([]);
  }, 300_000);
});

interface OpenOptions {
  http_port?: number;
  database_of?: TestService;
}
