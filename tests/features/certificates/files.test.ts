import { expect, test } from 'bun:test';
import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CertificateFiles } from '../../../src/features/certificates/certificate-files.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from '../../support/certificates.ts';
import { makeDataDirectory } from '../../support/service.ts';

test('certificate files: one that cannot be used is read until it can, although it looks as before, and reported once', async () => {
  const directory = await makeDataDirectory();
  const [certificate_file, key_file] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  await writeFile(certificate_file, CERTIFICATE);
  await writeFile(key_file, CERTIFICATE_KEY);
  const events: ServiceEvent[] = [];
  const files = await CertificateFiles.open([{ certificate_file, key_file }], {
    emit: (event) => void events.push(event),
  });
  const before = files.certificates;

  const now = new Date();
  await writeFile(certificate_file, CERTIFICATE.replaceAll('M', '?'));
  await utimes(certificate_file, now, now);
  for (const _ of ['at first', 'again']) await files.reload();
  expect(files.certificates).toBe(before);
  const reason = expect.stringContaining('has no certificate in PEM');
  expect(events).toEqual([{ event: 'certificate_not_read', reason }]);

  // The same file with the same length, at a time that the file system cannot tell from the one before.
  await writeFile(certificate_file, CERTIFICATE);
  await utimes(certificate_file, now, now);
  await files.reload();
  expect(files.certificates).not.toBe(before);
  const read = files.certificates;
  await files.reload();
  expect(files.certificates).toBe(read);
  expect(events).toHaveLength(1);
  await rm(directory, { recursive: true });
});
