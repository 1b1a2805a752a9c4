// Runs all suites: `bun test` in one part more than there are processors, since much of it waits; each part has a PostgreSQL
// of its own. What takes long is shortened, unless MUSTER_TEST_LONG is set.
// Prints what each says of its failures when it has ended; then the names of what failed and the sum of all, as `bun test` does.
import { availableParallelism } from 'node:os';

const PARTS_MAX = 4;
const COUNTS = ['pass', 'skip', 'fail'] as const;

const parts = Math.min(PARTS_MAX, availableParallelism() + 1);
const sums = new Map<string, number>();
const failed: string[] = [];
let is_bad = false;

async function runPart(part: number): Promise<void> {
  const command = [process.execPath, 'test', '--timeout=90000', '--only-failures', `--shard=${part}/${parts}`];
  const running = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([new Response(running.stdout).text(), new Response(running.stderr).text()]);
  await Bun.write(Bun.stdout, out + err);
  failed.push(...(err.match(/^\(fail\) .*$/gm) ?? []));
  for (const what of COUNTS) {
    const counted = Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(err)?.[1] ?? 0);
    sums.set(what, (sums.get(what) ?? 0) + counted);
  }
  if ((await running.exited) !== 0) is_bad = true;
}

const started = performance.now();
await Promise.all(Array.from({ length: parts }, (_, index) => runPart(index + 1)));
const seconds = Math.round((performance.now() - started) / 1_000);
const counted = COUNTS.map((what) => ` ${sums.get(what) ?? 0} ${what}\n`);
const said = failed.map((name) => `${name}\n`).join('');
await Bun.write(Bun.stdout, `\nAll ${parts} parts, in ${seconds} s:\n${said}${counted.join('')}`);
process.exit(is_bad ? 1 : 0);
