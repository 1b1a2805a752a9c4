import type { TrafficCounts } from './tables.ts';

/** The longest time of each class in which answers are counted. A class begins where the one before it ends. */
const ANSWER_CLASSES_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 120_000] as const;
const SLOWEST = ANSWER_CLASSES_MS.length - 1;

export const noTraffic = (): TrafficCounts => ({
  requests: 0,
  sockets: 0,
  connections: 0,
  open: 0,
  received_bytes: 0,
  sent_bytes: 0,
  answers: ANSWER_CLASSES_MS.map(() => 0),
});

/** Returns the class of an answer that began after a time. */
export function answerClassOf(after_ms: number): number {
  const found = ANSWER_CLASSES_MS.findIndex((longest) => after_ms <= longest);
  return found === -1 ? SLOWEST : found;
}

/** Returns the time within which a share of the answers came, rounded up to that of a class; undefined without answers. */
export function answeredWithin(answers: readonly number[], share: number): number | undefined {
  const all = answers.reduce((sum, count) => sum + count, 0);
  if (all === 0) return undefined;
  let counted = 0;
  const found = answers.findIndex((count) => {
    counted += count;
    return counted >= all * share;
  });
  return ANSWER_CLASSES_MS[found];
}

/** Returns the sum of counts. */
export function addCounts(one: TrafficCounts, other: TrafficCounts): TrafficCounts {
  return {
    requests: one.requests + other.requests,
    sockets: one.sockets + other.sockets,
    connections: one.connections + other.connections,
    open: one.open + other.open,
    received_bytes: one.received_bytes + other.received_bytes,
    sent_bytes: one.sent_bytes + other.sent_bytes,
    answers: one.answers.map((count, index) => count + (other.answers[index] ?? 0)),
  };
}
