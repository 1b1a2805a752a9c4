import { findProcessesByEnvironment, signalProcess } from '../../platform/system/processes.ts';
import type { TestVariables } from './service.ts';

/** How long processes may take to end after SIGTERM, and then after SIGKILL. */
const ENDS_WITHIN_MS = { asked: 5_000, killed: 5_000 };
const CHECK_EVERY_MS = 50;

/** Ends the processes of a run of tests: no other run has the same address of a clock, and processes inherit it. */
export async function endProcessesOf({ MUSTER_TEST_CLOCK }: Pick<TestVariables, 'MUSTER_TEST_CLOCK'>): Promise<void> {
  const entry = `MUSTER_TEST_CLOCK=${MUSTER_TEST_CLOCK}`;
  const asked = new Set<number>();
  const started = performance.now();
  const elapsed_ms = () => performance.now() - started;
  while (elapsed_ms() < ENDS_WITHIN_MS.asked + ENDS_WITHIN_MS.killed) {
    const left = findProcessesByEnvironment(entry);
    if (left.length === 0) return;
    const is_late = elapsed_ms() > ENDS_WITHIN_MS.asked;
    for (const pid of left) if (is_late || !asked.has(pid)) signalProcess(pid, is_late ? 'SIGKILL' : 'SIGTERM');
    for (const pid of left) asked.add(pid);
    await Bun.sleep(CHECK_EVERY_MS);
  }
}
