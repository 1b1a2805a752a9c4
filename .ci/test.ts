// Runs all suites: `bun test` in one part more than there are processors, since much of it waits; each part has a PostgreSQL
// of its own. What takes long is shortened, unless MUSTER_TEST_LONG is set.
// Prints what a part says if it failed; then what failed, by file and name, and the sum of all as `bun test` gives it.
import { availableParallelism } from 'node:os';

const PARTS_MAX = 4;
const COUNTS = ['pass', 'skip', 'fail'] as const;
/** Enough to read what failed; what a flood of errors says after that helps nobody. */
const OUTPUT_CHARACTERS_MAX = 30_000;

/** Files that take much longer than the others, in seconds on two processors: no part gets more of them than another. */
const SECONDS: Record<string, number> = {
  'tests/faults/stop.test.ts': 56,
  'tests/journeys/ctrl-c.test.ts': 29,
  'tests/features/servers/quota.test.ts': 20,
  'tests/faults/watch-oracle.test.ts': 15,
  'tests/faults/matchmaker-race.test.ts': 15,
  'tests/faults/slow-readers.test.ts': 14,
  'tests/platform/releases.test.ts': 13,
  'tests/faults/first-start.test.ts': 11,
  'tests/faults/database-away.test.ts': 11,
  'tests/faults/room.test.ts': 10,
  'tests/features/lobbies/model.test.ts': 10,
  'tests/features/servers/port-taken.test.ts': 10,
  'tests/faults/database.test.ts': 10,
  'tests/faults/many-connections.test.ts': 10,
  'tests/faults/verification.test.ts': 10,
  'tests/features/lobbies/seats.test.ts': 9,
  'tests/features/cdn/passwords.test.ts': 9,
};
const SECONDS_USUALLY = 1;

/** Deals all files out to so many parts, the longest first, each to the part that has least to do. */
function dealFiles(parts: number): string[][] {
  const files = [...new Bun.Glob('tests/**/*.test.ts').scanSync('.')]
    .map((file) => file.replaceAll('\\', '/'))
    .toSorted();
  const secondsOf = (file: string) => SECONDS[file] ?? SECONDS_USUALLY;
  const dealt = Array.from({ length: parts }, () => ({ files: [] as string[], seconds: 0 }));
  for (const file of files.toSorted((one, other) => secondsOf(other) - secondsOf(one))) {
    const [least] = dealt.toSorted((one, other) => one.seconds - other.seconds);
    least?.files.push(file);
    if (least) least.seconds += secondsOf(file);
  }
  return dealt.map(({ files: of_part }) => of_part);
}

/** The tests that failed in what `bun test` says, each with its file, which is named once before its tests. */
function failuresIn(output: string): string[] {
  const failures: string[] = [];
  let file = 'unknown file';
  for (const line of output.split('\n')) {
    if (/^tests\/.*\.test\.ts:$/.test(line)) file = line.slice(0, -1);
    if (line.startsWith('(fail) ')) failures.push(`(fail) ${file}: ${line.slice('(fail) '.length)}`);
    if (line.startsWith('# Unhandled error')) failures.push(`(error) ${file}: an error that no test awaits`);
  }
  return failures;
}

interface Part {
  output: string;
  failures: string[];
  counts: number[];
  is_bad: boolean;
}

async function runPart(files: string[]): Promise<Part> {
  const command = [process.execPath, 'test', '--timeout=90000', '--only-failures', ...files.map((file) => `./${file}`)];
  const running = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([new Response(running.stdout).text(), new Response(running.stderr).text()]);
  const is_bad = (await running.exited) !== 0;
  const counts = COUNTS.map((what) => Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(err)?.[1] ?? 0));
  const output = (out + err).slice(-OUTPUT_CHARACTERS_MAX);
  if (is_bad) await Bun.write(Bun.stdout, output);
  return { output, failures: failuresIn(err), counts, is_bad };
}

const started = performance.now();
const dealt = dealFiles(Math.min(PARTS_MAX, availableParallelism() + 1));
const parts = await Promise.all(dealt.map(runPart));
const seconds = Math.round((performance.now() - started) / 1_000);
const sums = COUNTS.map((what, place) => {
  const sum = parts.reduce((total, { counts }) => total + (counts[place] ?? 0), 0);
  return ` ${sum} ${what}\n`;
});
const failures = parts.flatMap((part) => part.failures.map((failure) => `${failure}\n`));
await Bun.write(Bun.stdout, `\nAll ${parts.length} parts, in ${seconds} s:\n${failures.join('')}${sums.join('')}`);
process.exit(parts.some(({ is_bad }) => is_bad) ? 1 : 0);
