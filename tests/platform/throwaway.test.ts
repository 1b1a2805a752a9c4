import { expect, test } from 'bun:test';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { provideMigratedCluster } from '../../src/platform/database/throwaway.ts';
import { StartError } from '../../src/platform/errors.ts';
import { tryLock } from '../../src/platform/system/libc.ts';
import { rejectionOf } from '../support/refusal.ts';
import { makeDataDirectory } from '../support/service.ts';

test('throwaway: a run of tests does not wait without end for another one that prepares PostgreSQL', async () => {
  const directory = await makeDataDirectory();
  await using lock = await open(join(directory, 'lock'), 'a', 0o600);
  expect(tryLock(lock.fd)).toBe(true);
  const options = { directory, cache_directory: directory, events: { emit() {} }, template_within_ms: 1 };
  const { message } = await rejectionOf(StartError, provideMigratedCluster(options));
  expect(message).toContain(`Another run of tests has been preparing PostgreSQL in ${directory}`);
  await rm(directory, { recursive: true });
});
