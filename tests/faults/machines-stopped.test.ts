import { afterAll, expect, test } from 'bun:test';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { openMachineGroup } from '../support/machines/machine-group.ts';
import { waitFor } from '../support/wait.ts';

/** Longer than a machine that runs takes to be lost, so that the two cannot be confused. */
const REST_MS = 10_000;
const LOST_MS = 2_000;
const TEST_TIMEOUT_MS = 600_000;

afterAll(() => {
  if (!IS_FULL_LENGTH)
    console.log('Not tried, because only a run at full length tries it: machines whose process was stopped.');
});

test.skipIf(!IS_FULL_LENGTH)(
  'a machine whose process was stopped by SIGTERM rests with its servers, is declared lost when that is over, and can come back',
  async () => {
    await using group = await openMachineGroup(2, {
      settings: { MUSTER_MACHINE_LOST_MS: String(LOST_MS), MUSTER_MACHINE_REST_MS: String(REST_MS) },
    });
    const [stopped, other] = group.machines;
    if (!stopped || !other) throw new Error('there are two machines');
    const seated = await group.seatOn(stopped);
    const began = performance.now();
    await stopped.program.stop('SIGTERM');
    await group.operatorOf(other).waitForState(stopped.machine_id, 'resting');
    expect(group.isAlive(seated)).toBe(true);
    // The time of a machine that runs does not apply to it.
    await waitFor(() => performance.now() - began > 2 * LOST_MS, 'that time to be over');
    expect([(await group.rows()).get(stopped.machine_id)?.state, (await group.readEnd(seated))?.stop_reason]).toEqual([
      'resting',
      null,
    ]);
    await group.operatorOf(other).waitForState(stopped.machine_id, 'lost');
    expect(performance.now() - began).toBeGreaterThan(REST_MS);
    const ended = await waitFor(async () => {
      const end = await group.readEnd(seated);
      return end?.stop_reason !== null && end;
    }, 'its lobby to end');
    expect(ended).toEqual({ stop_reason: 'machine_lost', seated: 0 });
    stopped.program = await stopped.home.start();
    await waitFor(() => !group.isAlive(seated), 'its game server to end');
    await group.operatorOf(other).waitForState(stopped.machine_id, 'up');
    expect(await group.faults()).toEqual([]);
  },
  TEST_TIMEOUT_MS,
);
