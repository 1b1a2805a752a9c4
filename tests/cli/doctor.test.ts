import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabaseAdmin } from '../support/database/read-only.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame } from '../support/game.ts';
import { find, makeControlledGame } from '../support/game-server.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { readToEnd } from '../support/processes.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const PORT = findFreePort();
const LOCAL_URL = `http://127.0.0.1:${PORT}`;
/** Names below it never have an address (RFC 6761). */
const NOWHERE = 'play.invalid';
/** An address may prepare 240 links in a window of 15 minutes. */
const REQUESTS_ABOVE_LIMIT = 300;

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-doctor-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

interface Found {
  exit_code: number;
  findings: { what: string; advice: string }[];
}

/** Runs the doctor on a service at its local address, as its administrator. */
async function examine(muster: TestService, ...more: string[]): Promise<Found> {
  const { run } = await makeProjectFolder(muster, home, { name: 'patient', files: { 'a.txt': '' } });
  const { exit_code, stdout } = await run('doctor', '--json', '--url', LOCAL_URL, ...more);
  return { exit_code, findings: JSON.parse(stdout).findings };
}

const adviceOf = (findings: Found['findings'], text: string) =>
  findings.find(({ what }) => what.includes(text))?.advice;

test('doctor: names a domain and sites without an address, and an address without TLS', async () => {
  await using muster = await openTestService({
    MUSTER_PORT: String(PORT),
    MUSTER_PUBLIC_URL: `http://${NOWHERE}`,
    MUSTER_SITES_DOMAIN: 'sites.invalid',
  });
  const { exit_code, findings } = await examine(muster);
  expect(exit_code).toBe(1);
  expect(adviceOf(findings, `The domain ${NOWHERE} of the service has no address.`)).toContain('MUSTER_PUBLIC_URL');
  expect(adviceOf(findings, `Tokens travel unencrypted to http://${NOWHERE}.`)).toContain('MUSTER_ACME_HOSTS');
  expect(adviceOf(findings, '*.sites.invalid is not in the DNS')).toContain('MUSTER_SITES_DOMAIN');
}, 300_000);

test('doctor: says what to do about a disk with too little space, and about a database that takes no writes', async () => {
  // More than the disks of test machines have free.
  await using muster = await openTestService({ MUSTER_PORT: String(PORT), MUSTER_DISK_RESERVE_MB: '1048576' });
  const low = await examine(muster);
  expect(low.exit_code).toBe(1);
  expect(adviceOf(low.findings, 'so uploads and builds are refused')).toContain('a smaller MUSTER_DISK_RESERVE_MB');
  await using operator = await openDatabaseAdmin(muster.database_address);
  await operator.setReadOnly('database');
  const unready = await examine(muster);
  expect(unready.exit_code).toBe(1);
  expect(adviceOf(unready.findings, 'The database is read-only')).toContain('Switch default_transaction_read_only off');
}, 300_000);

test('doctor: says why a service is not ready while it waits for its database', async () => {
  await using waiting = await makeHome({ DATABASE_URL: `postgres://muster@127.0.0.1:${findFreePort()}/muster` });
  const program = waiting.launch();
  await waitFor(
    () =>
      fetch(`${waiting.url}/health/live`).then(
        ({ ok }) => ok,
        () => false,
      ),
    `the service to answer:\n${program.output()}`,
  );
  const args = ['doctor', '--json', '--url', waiting.url, '--token', 'unknown'];
  const child = Bun.spawn([...COMMAND, ...args], { cwd: home, env: { HOME: home }, stdout: 'pipe', stderr: 'pipe' });
  const { exit_code, stdout } = await readToEnd(child);
  expect(exit_code).toBe(1);
  const what = expect.stringMatching(/database/);
  expect(JSON.parse(stdout).findings).toEqual([{ what, advice: expect.any(String) }]);
  await program.stop('SIGTERM');
}, 300_000);

test('doctor: a check that fails is a finding, beside those of the others', async () => {
  await using muster = await openTestService({ MUSTER_PORT: String(PORT), MUSTER_DISK_RESERVE_MB: '1048576' });
  const game = await makeGame(muster.api, muster.administrator_token);
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (pathname === '/cloud/bootstrap')
        return Response.json({ code: 'ERROR', message: 'Refused.' }, { status: 500 });
      return fetch(`${LOCAL_URL}${pathname}${search}`, request);
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const { exit_code, findings } = await examine(muster, '--url', url, '--game', game.game_id);
  await server.stop(true);
  expect([exit_code, findings.map(({ what }) => what)]).toEqual([
    1,
    [expect.stringContaining('so uploads and builds are refused'), 'Refused.'],
  ]);
}, 300_000);

test('doctor: says that the namespace is not checked, which is a problem if an option names it', async () => {
  await using muster = await openTestService({ MUSTER_PORT: String(PORT) });
  const game = await makeGame(muster.api, muster.administrator_token);
  const files = { 'muster.yaml': 'game: undeployed\n' };
  const { run } = await makeProjectFolder(muster, home, { name: 'undeployed', files });
  const { stderr } = await run('doctor', '--json', '--url', LOCAL_URL);
  expect(stderr).toContain('The namespace was not checked: There is no game "undeployed"');
  const { exit_code, findings } = await examine(muster, '--game', game.game_id, '--namespace', 'produ');
  expect(exit_code).toBe(1);
  expect(adviceOf(findings, 'has no namespace "produ"; it has: prod')).toBeDefined();
}, 300_000);

test('doctor: checks the certificate of a service that is addressed by an IP address', async () => {
  const https_port = findFreePort();
  const tls = { MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(https_port) };
  await using muster = await openTestService({ MUSTER_PORT: String(PORT), ...tls });
  const { start } = await makeProjectFolder(muster, home, { name: 'addressed', files: { 'a.txt': '' } });
  const trusting = { NODE_EXTRA_CA_CERTS: join(muster.config.data_directory, 'local-ca.pem') };
  for (const host of ['localhost', '127.0.0.1', '[::1]']) {
    const child = start(['doctor', '--json', '--url', `https://${host}:${https_port}`], trusting);
    const { stdout } = await readToEnd(child);
    expect([host, JSON.parse(stdout).findings.filter(({ what }: { what: string }) => what.includes('TLS'))]).toEqual([
      host,
      [],
    ]);
  }
}, 300_000);

test('doctor: trusts the certificate that a service of this machine has signed, and other commands do, too', async () => {
  const https_port = findFreePort();
  const tls = { MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(https_port) };
  await using muster = await openTestService({ MUSTER_PORT: String(PORT), ...tls });
  const { start } = await makeProjectFolder(muster, home, { name: 'signed', files: { 'a.txt': '' } });
  const url = `https://localhost:${https_port}`;
  const runWith = async (args: string[], variables: Record<string, string>) => {
    return await readToEnd(start([...args, '--url', url], variables));
  };
  const here = { MUSTER_DATA: muster.config.data_directory };
  expect(await runWith(['whoami'], here)).toMatchObject({ exit_code: 0 });
  const { stdout } = await runWith(['doctor', '--json'], here);
  expect(JSON.parse(stdout).findings.filter(({ what }: { what: string }) => /TLS|certificate/.test(what))).toEqual([]);
  const elsewhere = await runWith(['whoami'], { MUSTER_DATA: home });
  expect([elsewhere.exit_code, elsewhere.stderr]).toEqual([1, expect.stringContaining('is not trusted here')]);
}, 300_000);

test('doctor: names the limits of requests that were hit within the last hour', async () => {
  await using muster = await openTestService({ MUSTER_PORT: String(PORT), MUSTER_LIMITS_SCALE: '1' });
  const prepare = () => muster.api.call('POST', '/cloud/devices/links');
  const links = await Promise.all(Array.from({ length: REQUESTS_ABOVE_LIMIT }, prepare));
  expect(links.map(({ status }) => status)).toContain(429);
  const { findings } = await examine(muster);
  expect(adviceOf(findings, 'POST /cloud/devices/links')).toContain('MUSTER_TRUSTED_PROXIES');
}, 300_000);

test.skipIf(!IS_FULL_LENGTH)(
  'doctor: names the limits of a namespace that its players have hit',
  async () => {
    await using muster = await openTestService({ MUSTER_PORT: String(PORT) });
    const game = await makeControlledGame(muster, { max_players: 1 });
    expect((await find(muster, game)).status).toBe(200);
    expect((await find(muster, game)).body.code).toBe('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE');
    const { game_id, namespace_id, cloud_token: token } = game;
    const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/counters?window=hour`;
    // A minute is stored when it is over.
    await waitFor(async () => JSON.stringify(await muster.api.get(path, token)).includes('TOO_MANY'), 'the counters');
    const { findings } = await examine(muster, '--game', game_id);
    expect(adviceOf(findings, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')).toContain('max_players_per_client');
  },
  300_000,
);

test('doctor: names the ports of the address that players get', async () => {
  const closed = findFreePort();
  await using muster = await openTestService({
    MUSTER_PORT: String(PORT),
    MUSTER_PUBLIC_URL: `https://localhost:${closed}`,
  });
  const { findings } = await examine(muster);
  const closed_port = findings.find(({ what }) => what.startsWith(`Nothing answers at localhost, port ${closed}`));
  expect(closed_port?.advice).toContain('MUSTER_HTTPS_PORT');
}, 300_000);
