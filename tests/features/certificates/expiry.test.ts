import { expect, test } from 'bun:test';
import { findFreePort } from '../../support/network/test-ports.ts';
import { fingerprintAt, writeCertificate } from '../../support/network/tls.ts';
import { openTestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

test('https: when a certificate expires, another that is valid is served instead', async () => {
  const { files } = await writeCertificate(['localhost'], { not_after: new Date(Date.now() + DAY_MS) });
  const port = findFreePort();
  await using muster = await openTestService({ ...files, MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(port) });
  const file_fingerprint = await fingerprintAt(port, 'localhost');
  expect(file_fingerprint).not.toBe(await fingerprintAt(port, 'a.servers.localhost'));
  muster.clock.advance(2 * DAY_MS);
  // A connection that is opened while certificates change may be refused.
  const fingerprint = () => fingerprintAt(port, 'localhost').catch(() => file_fingerprint);
  await waitFor(async () => (await fingerprint()) !== file_fingerprint, 'the certificate of the local authority');
}, 300_000);
