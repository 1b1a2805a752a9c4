import { describe, expect, test } from 'bun:test';
import { FailureDetector, heartbeatInterval, type ObservedMachine } from '../../../src/features/machines/rules.ts';

const LOST_AFTER_MS = 30_000;
const EVERY_MS = heartbeatInterval(LOST_AFTER_MS);
const BLIND_AFTER_MS = 2 * EVERY_MS;

const machine = (more: Partial<ObservedMachine> = {}): ObservedMachine => ({
  node_id: 'm',
  holder: 'first',
  beat: 1,
  state: 'up',
  lost_after_ms: LOST_AFTER_MS,
  ...more,
});

/** Reads the heartbeat of a machine at each interval until a moment. Returns the last detection. */
function readUntil(detector: FailureDetector, end_ms: number, from_ms = 0, more: Partial<ObservedMachine> = {}) {
  let detection = detector.detect([machine(more)], { asked_ms: from_ms, answered_ms: from_ms });
  for (let at_ms = from_ms + EVERY_MS; at_ms <= end_ms; at_ms += EVERY_MS) {
    detection = detector.detect([machine(more)], { asked_ms: at_ms, answered_ms: at_ms });
  }
  return detection;
}

describe('machines: a heartbeat that stops', () => {
  test('a machine is not lost while its heartbeat changes, however long that takes', () => {
    const detector = new FailureDetector(BLIND_AFTER_MS);
    for (let beat = 0; beat < 100; beat += 1) {
      const at_ms = beat * EVERY_MS;
      const { lost, late } = detector.detect([machine({ beat })], { asked_ms: at_ms, answered_ms: at_ms });
      expect([lost.length, late.size]).toEqual([0, 0]);
    }
  });

  test('a heartbeat that stays the same is late first, then lost', () => {
    const early = readUntil(new FailureDetector(BLIND_AFTER_MS), 2 * EVERY_MS);
    expect([early.late.size, early.lost.length]).toEqual([0, 0]);
    const late = readUntil(new FailureDetector(BLIND_AFTER_MS), 3 * EVERY_MS);
    expect([[...late.late], late.lost.length]).toEqual([['m'], 0]);
    const almost = readUntil(new FailureDetector(BLIND_AFTER_MS), LOST_AFTER_MS - EVERY_MS);
    expect([almost.lost.length, almost.next_in_ms]).toEqual([0, EVERY_MS]);
    expect(readUntil(new FailureDetector(BLIND_AFTER_MS), LOST_AFTER_MS).lost).toHaveLength(1);
  });

  test('a process that read no heartbeats for a while starts anew', () => {
    const detector = new FailureDetector(BLIND_AFTER_MS);
    readUntil(detector, LOST_AFTER_MS - EVERY_MS);
    const woken_ms = LOST_AFTER_MS + 3_600_000;
    expect(detector.detect([machine()], { asked_ms: woken_ms, answered_ms: woken_ms }).lost).toEqual([]);
    expect(readUntil(detector, woken_ms + LOST_AFTER_MS - EVERY_MS, woken_ms + EVERY_MS).lost).toEqual([]);
    const end_ms = woken_ms + LOST_AFTER_MS;
    expect(detector.detect([machine()], { asked_ms: end_ms, answered_ms: end_ms }).lost).toHaveLength(1);
  });

  test('a process whose read of the heartbeats took long starts anew', () => {
    const detector = new FailureDetector(BLIND_AFTER_MS);
    readUntil(detector, LOST_AFTER_MS - EVERY_MS);
    const slow = { asked_ms: LOST_AFTER_MS, answered_ms: LOST_AFTER_MS + BLIND_AFTER_MS };
    expect(detector.detect([machine()], slow).lost).toEqual([]);
  });

  test('a process that could not read the heartbeats starts anew', () => {
    const detector = new FailureDetector(BLIND_AFTER_MS);
    readUntil(detector, LOST_AFTER_MS - EVERY_MS);
    detector.forget();
    const { lost } = detector.detect([machine()], { asked_ms: LOST_AFTER_MS, answered_ms: LOST_AFTER_MS });
    expect(lost).toEqual([]);
  });

  test('a new holder with the same heartbeat starts anew', () => {
    const detector = new FailureDetector(BLIND_AFTER_MS);
    readUntil(detector, LOST_AFTER_MS - EVERY_MS);
    expect(readUntil(detector, LOST_AFTER_MS, LOST_AFTER_MS, { holder: 'second' }).lost).toEqual([]);
  });

  test('a machine that rests has the time that its row says, and is not late', () => {
    const resting = { state: 'resting', lost_after_ms: 600_000 } as const;
    const before = readUntil(new FailureDetector(BLIND_AFTER_MS), 600_000 - EVERY_MS, 0, resting);
    expect([before.lost.length, before.late.size]).toEqual([0, 0]);
    expect(readUntil(new FailureDetector(BLIND_AFTER_MS), 600_000, 0, resting).lost).toHaveLength(1);
  });

  test.each(['stopped', 'lost'] as const)('a machine that is %s is neither late nor lost', (state) => {
    const detection = readUntil(new FailureDetector(BLIND_AFTER_MS), 10 * LOST_AFTER_MS, 0, { state });
    expect([detection.lost.length, detection.late.size]).toEqual([0, 0]);
  });
});
