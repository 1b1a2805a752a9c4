import { expect, test } from 'bun:test';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalAuthority } from '../../../src/features/certificates/local-authority.ts';
import { openDataDirectory } from '../../../src/platform/data-directory.ts';
import { StartError } from '../../../src/platform/errors.ts';
import { createFixedClock } from '../../support/clock.ts';
import { openTls } from '../../support/network/tls.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { makeDataDirectory } from '../../support/service.ts';

const DAY_MS = 24 * 3_600_000;
const NAMES = ['localhost', '127.0.0.1', '::1', 'sites.localhost', '*.sites.localhost'];

async function openAuthority(names = NAMES) {
  const data = openDataDirectory(await makeDataDirectory());
  const clock = createFixedClock(new Date());
  return { data, clock, open: (others = names) => LocalAuthority.open({ data, clock, names: others }) };
}

test('local authority: a client that trusts it connects to its names, and to no others', async () => {
  const { open } = await openAuthority();
  const { certificate, file } = await open();
  const { key, certificate: cert } = certificate;
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch: () => new Response() });
  const ca = await readFile(file, 'utf8');
  for (const host of ['localhost', 'game.sites.localhost']) {
    (await openTls(server.port ?? 0, host, { ca })).destroy();
  }
  await expect(openTls(server.port ?? 0, 'example.com', { ca })).rejects.toThrow();
  await server.stop(true);
});

test('local authority: only its user can read its key', async () => {
  const { data, open } = await openAuthority();
  await open();
  expect((await stat(join(data.path, 'local-ca-key.pem'))).mode & 0o777).toBe(0o600);
});

test('local authority: the next start keeps the authority and signs a new certificate', async () => {
  const { open } = await openAuthority();
  const first = await open();
  const before = await readFile(first.file, 'utf8');
  const second = await open();
  expect(await readFile(second.file, 'utf8')).toBe(before);
  expect(second.certificate.certificate).not.toBe(first.certificate.certificate);
});

test('local authority: one that may not sign a name is replaced', async () => {
  const { open } = await openAuthority();
  const before = await readFile((await open()).file, 'utf8');
  const { file } = await open([...NAMES, 'play.test']);
  expect(await readFile(file, 'utf8')).not.toBe(before);
});

test('local authority: the start is refused with files that are damaged or do not fit, and names them', async () => {
  const { open, data } = await openAuthority();
  await open();
  const [certificate_file, key_file] = [join(data.path, 'local-ca.pem'), join(data.path, 'local-ca-key.pem')];
  const whole = { certificate: await readFile(certificate_file, 'utf8'), key: await readFile(key_file, 'utf8') };
  const { data: other, open: openOther } = await openAuthority();
  await openOther();
  const other_key = await readFile(join(other.path, 'local-ca-key.pem'), 'utf8');
  for (const damage of [
    { certificate: '' },
    { certificate: whole.certificate.slice(0, 300) },
    { key: '' },
    { key: whole.key.slice(0, 100) },
    { key: other_key },
  ]) {
    const { certificate, key } = { ...whole, ...damage };
    await writeFile(certificate_file, certificate);
    await writeFile(key_file, key);
    const { message } = await rejectionOf(StartError, open());
    expect(message).toContain(`The local authority in ${certificate_file} and ${key_file} cannot be used`);
  }
  await writeFile(key_file, whole.key);
  await open();
});

test('local authority: a certificate is signed anew after two thirds of its lifetime', async () => {
  const { open, clock } = await openAuthority();
  const local = await open();
  const first = local.certificate;
  clock.advance(59 * DAY_MS);
  await local.renew();
  expect(local.certificate).toBe(first);
  clock.advance(2 * DAY_MS);
  await local.renew();
  expect(local.certificate.expires_at.getTime()).toBeGreaterThan(first.expires_at.getTime());
});
