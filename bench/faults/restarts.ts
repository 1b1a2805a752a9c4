import type { Program } from '../../tests/support/program.ts';
import { atMost, type FaultContext, secondsSince } from './fault.ts';
import type { Subject } from './subject.ts';

/** Requests in progress have 10 s of this; the rest of the stop has the remaining time. */
const STOP_S_MAX = 20;
const STOP_S_WAITED = 30;

/** Ends the service by a signal, and by SIGKILL if that has no effect. Records how long it took. */
export async function stopBySignal(
  context: FaultContext,
  { program }: Pick<Subject, 'program'>,
  signal: 'SIGTERM' | 'SIGKILL',
) {
  const started = performance.now();
  await context.within(STOP_S_WAITED, 'the service to end', program.stop(signal)).catch(async () => {
    await program.stop('SIGKILL');
  });
  if (signal === 'SIGTERM') context.expect(atMost('ended after SIGTERM', STOP_S_MAX, secondsSince(started), 's'));
}

/**
 * Starts the service again like a supervisor that tries once a second. Returns the program and the number of starts.
 */
export async function startAgain(
  context: FaultContext,
  { home }: Pick<Subject, 'home'>,
  settings: Parameters<Subject['home']['start']>[0],
  deadline_s: number,
): Promise<{ program: Program | undefined; starts: number; seconds: number; why: string }> {
  const started = performance.now();
  let why = '';
  let starts = 0;
  while (secondsSince(started) < deadline_s) {
    starts += 1;
    const left_s = deadline_s - secondsSince(started);
    const program = await context.within(left_s, 'the service to start', home.start(settings)).catch((error) => {
      why = String(error instanceof Error ? error.message : error);
      return undefined;
    });
    if (program) return { program, starts, seconds: secondsSince(started), why };
    await Bun.sleep(1_000);
  }
  return { program: undefined, starts, seconds: secondsSince(started), why };
}
