/** Measured times in milliseconds. */
export interface Samples {
  name: string;
  milliseconds: number[];
}

/** Returns how long a piece of work takes. */
export async function measure(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Sends requests at a fixed rate, without waiting for answers. Times are from when a request was due. */
export async function measureAtRate(
  name: string,
  { count, every_ms }: { count: number; every_ms: number },
  send: () => Promise<unknown>,
): Promise<Samples> {
  const samples: Samples = { name, milliseconds: [] };
  const started = performance.now();
  const requests = Array.from({ length: count }, async (_, index) => {
    const due = started + index * every_ms;
    await Bun.sleep(Math.max(due - performance.now(), 0));
    await send();
    samples.milliseconds.push(performance.now() - due);
  });
  await Promise.all(requests);
  return samples;
}

/** Returns a quantile of the samples: 0.5 for the median, 0.95 for p95. */
export function percentile({ milliseconds }: Samples, part: number): number {
  const sorted = milliseconds.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

/** Prints a line for each of the samples, with its ratio to the first, which is the peer. */
export function report(title: string, all: Samples[], limit?: string): void {
  const [peer] = all;
  console.log(`\n${title}${limit === undefined ? '' : ` (limit: ${limit})`}`);
  for (const samples of all) {
    const ratio = peer ? percentile(samples, 0.5) / percentile(peer, 0.5) : Number.NaN;
    const [p50, p95] = [percentile(samples, 0.5), percentile(samples, 0.95)].map((value) =>
      value.toFixed(0).padStart(6),
    );
    const { length } = samples.milliseconds;
    console.log(`  ${samples.name.padEnd(44)}p50 ${p50} ms  p95 ${p95} ms  ${ratio.toFixed(2)}×  n=${length}`);
  }
}
