// The process that sends requests to the service during a fault, see probe.ts. Its requests come from many loopback
// addresses, so that no limit for an address applies to them; the attacker has another address.
import { type Answered, createConnections } from './connections.ts';
import type { Latencies, ProbeLine, ProbeOrder, ProbeReport } from './probe.ts';

const ADDRESSES = Array.from({ length: 250 }, (_, index) => `127.0.1.${index + 1}`);
/** Concurrent requests of one kind. A request beyond them is not sent, and counts as unanswered in the end. */
const UNDER_WAY_MAX = 600;
const ANSWER_MS_MAX = 30_000;
/** How long the end of a phase waits for requests in progress. */
const LAST_ANSWERS_MS = 2_000;
const OK = '200';

let phase: { stop(): Promise<Latencies[]> } | undefined;
const report = (what: ProbeReport) => process.send?.(what);

process.on('message', async (order: ProbeOrder) => {
  if (order.order === 'start') {
    phase = begin(order);
    report({ is_started: true });
  } else {
    report({ latencies: (await phase?.stop()) ?? [] });
    phase = undefined;
  }
});
process.on('disconnect', () => process.exit());
report({ is_there: true });

function begin({ port, lines, is_fresh }: ProbeOrder & { order: 'start' }) {
  const connections = createConnections({ port, addresses: ADDRESSES, is_fresh });
  const under_way = new Set<Promise<void>>();
  const ending = Promise.withResolvers<Answered>();
  const all = lines.map(({ name }): Latencies => ({ name, milliseconds: [], failures: {} }));

  async function ask({ request }: ProbeLine, latencies: Latencies, due: number, is_sent: boolean): Promise<void> {
    const late = Bun.sleep(ANSWER_MS_MAX).then((): Answered => ({ outcome: 'no answer' }));
    const answers = is_sent ? [connections.ask(request)] : [];
    const { outcome } = await Promise.race([...answers, late, ending.promise]);
    if (outcome === OK || outcome === 'no answer') latencies.milliseconds.push(performance.now() - due);
    if (outcome !== OK) latencies.failures[outcome] = (latencies.failures[outcome] ?? 0) + 1;
  }

  const timers = lines.map((line, index) => {
    const started = performance.now();
    let sent = 0;
    let waiting = 0;
    const sendDue = () => {
      const latencies = all[index];
      for (; latencies && sent < ((performance.now() - started) / 1_000) * line.per_second; sent += 1) {
        const due = started + (sent / line.per_second) * 1_000;
        const asked = ask(line, latencies, due, waiting < UNDER_WAY_MAX);
        waiting += 1;
        under_way.add(asked);
        void asked.finally(() => {
          waiting -= 1;
          under_way.delete(asked);
        });
      }
    };
    return setInterval(sendDue, 5);
  });

  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.race([Promise.all(under_way), Bun.sleep(LAST_ANSWERS_MS)]);
      ending.resolve({ outcome: 'no answer' });
      await Promise.all(under_way);
      connections.close();
      return all;
    },
  };
}
