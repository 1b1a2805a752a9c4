import { expect, test } from 'bun:test';
import { toFinding } from '../../src/platform/findings.ts';
import { healthRoutes } from '../../src/platform/http/health.ts';
import type { Limits } from '../../src/platform/limits/limits.ts';
import { openTestApp } from '../support/http-app.ts';
import { waitFor } from '../support/wait.ts';

const REQUESTS = 50;
const FULL = toFinding('DATABASE_DISK_FULL', 'the disk of the database is full');

test('readiness: a warning that fails hides neither the other warnings nor that the service is ready', async () => {
  const warnings = [() => Promise.reject(new Error('EMFILE')), async () => FULL];
  const options = { checks: [], warnings, readIsolation: () => undefined, listRefused: () => [] };
  await using app = await openTestApp(healthRoutes(options));
  const { status, body } = await app.api.get('/health/ready');
  expect([status, body]).toEqual([200, { status: 'ok', warnings: [FULL] }]);
});

test('readiness: requests during a check share the next one, which finds what has changed since', async () => {
  const gate = Promise.withResolvers<void>();
  let checks = 0;
  let finding: typeof FULL | undefined;
  const check = async () => {
    checks += 1;
    const found = finding;
    await gate.promise;
    return found;
  };
  const options = { checks: [check], warnings: [], readIsolation: () => undefined, listRefused: () => [] };
  let arrived = 0;
  const limits: Limits = {
    count() {
      arrived += 1;
      return undefined;
    },
    [Symbol.dispose]() {},
  };
  await using app = await openTestApp(healthRoutes(options), { limits });
  const ask = async () => (await app.api.get('/health/ready')).status;
  const first = ask();
  await waitFor(() => checks === 1, 'the first check');
  finding = FULL;
  const others = Array.from({ length: REQUESTS }, ask);
  await waitFor(() => arrived === 1 + REQUESTS, 'all requests');
  gate.resolve();
  expect(await first).toBe(200);
  expect(new Set(await Promise.all(others))).toEqual(new Set([503]));
  expect(checks).toBe(2);
});
