import { expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTestService } from '../../support/service.ts';
import { findFreePort } from '../../support/test-ports.ts';
import { fingerprintAt, makeCertificate } from '../../support/tls.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

test('https: when a certificate expires, another that is valid is served instead', async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'muster-expiry-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const files = { MUSTER_TLS_CERTIFICATE: join(folder, 'a.crt'), MUSTER_TLS_KEY: join(folder, 'a.key') };
  const pair = await makeCertificate(['localhost'], { not_after: new Date(Date.now() + DAY_MS) });
  await writeFile(files.MUSTER_TLS_CERTIFICATE, pair.certificate);
  await writeFile(files.MUSTER_TLS_KEY, pair.key);
  const port = findFreePort();
  const muster = opened.use(
    await openTestService({ ...files, MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(port) }),
  );
  const file_fingerprint = await fingerprintAt(port, 'localhost');
  expect(file_fingerprint).not.toBe(await fingerprintAt(port, 'a.servers.localhost'));
  muster.clock.advance(2 * DAY_MS);
  // A connection that is opened while certificates change may be refused.
  const fingerprint = () => fingerprintAt(port, 'localhost').catch(() => file_fingerprint);
  await waitFor(async () => (await fingerprint()) !== file_fingerprint, 'the certificate of the local authority');
}, 60_000);
