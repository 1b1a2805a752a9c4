import { expect, test } from 'bun:test';
import { cp, rm } from 'node:fs/promises';
import { StartError } from '../../../src/platform/errors.ts';
import { machineIdOf, machinesOf } from '../../support/machines/machines.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { makeDataDirectory, openTestService } from '../../support/service.ts';

test('a copy of the data directory of a machine that runs is refused, and the machine goes on', async () => {
  await using muster = await openTestService({ MUSTER_MACHINE_LOST_MS: '2000' });
  const { data_directory } = muster.config;
  const machine_id = await machineIdOf(data_directory);
  const copy = await makeDataDirectory();
  try {
    await cp(data_directory, copy, { recursive: true });
    const { message } = await rejectionOf(StartError, openTestService({ MUSTER_DATA: copy }, { database_of: muster }));
    expect(message).toStartWith(`The data directory ${copy} is a copy: the machine ${machine_id} already runs on `);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  expect(await machinesOf(muster).list()).toMatchObject([{ machine_id, state: 'up' }]);
  expect(muster.events.map(({ event }) => event)).not.toContain('machine_replaced');
}, 300_000);
