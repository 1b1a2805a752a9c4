import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalAuthority } from '../../src/features/certificates/local-authority.ts';
import { openDataDirectory } from '../../src/platform/data-directory.ts';
import { createTestClock } from './clock.ts';
import { IS_FULL_LENGTH } from './full-length.ts';
import { findFreePort } from './network/test-ports.ts';
import { makeDataDirectory } from './service.ts';
import { waitFor } from './wait.ts';

const PROGRAMS = ['pebble', 'pebble-challtestsrv'].map((name) => Bun.which(name));

/** Why there is no ACME authority here; undefined if there is one. */
export const WITHOUT_PEBBLE = !IS_FULL_LENGTH
  ? 'only a run at full length tries it'
  : PROGRAMS.includes(null)
    ? 'pebble is not installed'
    : undefined;

/** An ACME authority, for which every name is an address of this machine. */
export interface Pebble extends AsyncDisposable {
  directory: string;
  /** The file with the certificate of its own address. */
  ca_file: string;
  /** The port to which it sends HTTP-01 requests. */
  http_port: number;
  /** Returns the root of the certificates that it issues. */
  readRoot(): Promise<string>;
  /** Makes a name resolvable or not. */
  setMissing(host: string, is_missing: boolean): Promise<void>;
}

/**
 * Starts Let's Encrypt's test authority at an address, and a name server for it. `host_address`: the address of all names;
 * `http_port`: by default a free one.
 */
export async function openPebble({
  address = '127.0.0.1',
  host_address = '127.0.0.1',
  http_port = findFreePort(),
} = {}): Promise<Pebble> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'muster-pebble-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  using data = openDataDirectory(await makeDataDirectory());
  opened.defer(() => rm(data.path, { recursive: true, force: true }));
  const local = await LocalAuthority.open({ data, clock: createTestClock(), names: ['localhost', address] });
  const [listen, management, dns, dns_management] = Array.from({ length: 4 }, findFreePort);
  await writeFile(join(folder, 'ca.pem'), await readFile(local.file));
  await writeFile(join(folder, 'cert.pem'), local.certificate.certificate);
  await writeFile(join(folder, 'key.pem'), local.certificate.key);
  const pebble = {
    listenAddress: `${address}:${listen}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: join(folder, 'cert.pem'),
    privateKey: join(folder, 'key.pem'),
    httpPort: http_port,
    tlsPort: 1,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ pebble }));
  const spawn = (command: string[]) => {
    const program = Bun.spawn(command, {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20' },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    opened.defer(async () => {
      program.kill();
      await program.exited;
    });
  };
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', ''];
  const dns_address = `127.0.0.1:${dns}`;
  const dns_url = `http://127.0.0.1:${dns_management}`;
  spawn([
    'pebble-challtestsrv',
    ...none,
    '-dns01',
    dns_address,
    '-management',
    `127.0.0.1:${dns_management}`,
    '-defaultIPv4',
    host_address,
    '-defaultIPv6',
    '',
  ]);
  spawn(['pebble', '-config', join(folder, 'config.json'), '-dnsserver', dns_address]);
  const directory = `https://${address}:${listen}/dir`;
  const reach = (url: string) => fetch(url, { tls: { rejectUnauthorized: false } }).catch(() => undefined);
  await waitFor(() => reach(directory), 'pebble');
  await waitFor(() => reach(dns_url), "pebble's name server");
  const everything = opened.move();
  return {
    directory,
    ca_file: join(folder, 'ca.pem'),
    http_port,
    readRoot: async () => (await reach(`https://127.0.0.1:${management}/roots/0`))?.text() ?? '',
    async setMissing(host, is_missing) {
      const body = JSON.stringify({ host: `${host}.`, rcode: 3 });
      const path = is_missing ? 'set-servfail' : 'clear-servfail';
      await fetch(`${dns_url}/${path}`, { method: 'POST', body });
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
