// Runs the suites: builds the executable, then runs `bun test` with four workers more than there are processors (at full
// length with one more), since much of it waits; each worker has a PostgreSQL of its own. The files that take longest run
// only if MUSTER_TEST_LONG is set, and other long tests are shorter without it:
// see docs/decisions/0052-what-the-test-command-runs.md.
// MUSTER_TEST_PASSED names a file: a short run writes the test files to it that passed at full length, and a run at
// full length does not run those again. Prints the output of each file that failed; then the files that took longest,
// the failures by file and name, and the sum as `bun test` gives it. Failed files run once more, alone, as long as
// they are few: see docs/decisions/0051-failed-files-run-again.md. Where MUSTER_TEST_REQUIRED is set, as in CI, a test that
// is skipped at full length counts as failed, because the machine lacks what it needs.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readChildren, signalProcess } from '../src/platform/system/processes.ts';
import {
  type Failure,
  failuresIn,
  filesIn,
  hasEnded,
  outputByFile,
  type ReportedFile,
  skippedIn,
} from './test-output.ts';

const IS_FULL_LENGTH = process.env.MUSTER_TEST_LONG !== undefined;
/** At full length less, since browsers, containers and a Kubernetes run beside the tests. */
const WORKERS_BEYOND_PROCESSORS = IS_FULL_LENGTH ? 1 : 4;
const WORKERS_MAX = 8;
/** Some times what a run takes on a busy machine: `bun test` does not interrupt a test that never awaits. */
const RUN_MS_MAX = (IS_FULL_LENGTH ? 120 : 30) * 60_000;
/** A worker's PostgreSQL and files are removed after its end. */
const CLEANED_WITHIN_MS = 60_000;
const COUNTS = ['pass', 'skip', 'fail'] as const;
/**
 * Compiles less eagerly than a service should: each test file opens a service whose code it runs a few times, so the
 * compilers took an eighth of the processor time. The programs that the tests start do not get these.
 */
const COMPILES_RARELY = {
  BUN_JSC_thresholdForJITAfterWarmUp: '2000',
  BUN_JSC_thresholdForOptimizeAfterWarmUp: '5000',
  BUN_JSC_useFTLJIT: '0',
};
/** Enough to read what failed in a file, also in a flood of errors. */
const OUTPUT_CHARACTERS_MAX = 30_000;
const SLOWEST_LISTED = 30;
/** More files than this do not fail because the machine was busy. */
const RUN_AGAIN_MAX = 4;

/** Whether a test that is skipped at full length counts as failed. */
const IS_ALL_REQUIRED = IS_FULL_LENGTH && process.env.MUSTER_TEST_REQUIRED === '1';
/** Tests that a complete machine skips too. */
const MAY_BE_SKIPPED = [
  // These servers have no user of their own.
  /the runtime &quot;process, all as one user&quot;/,
  // The networks of Podman are its own, and it does not count cached files apart.
  /^tests\/features\/servers\/engine\.test\.ts: .*\bpodman > does not reach another server$/,
  /^tests\/features\/servers\/engine\.test\.ts: .*\bpodman > has its memory counted without cached files$/,
  /^tests\/features\/servers\/engine\.test\.ts: .*\bpodman > starts, also if two services created a network at once$/,
  // Not every kernel can run programs for other processors.
  /^tests\/journeys\/releases\.test\.ts: a release > for arm64 serves/,
];

/**
 * The milliseconds that the longest files take while others run, on two processors. Of a file that a short run shortens,
 * those at full length.
 * `bun test` starts these files first.
 */
const TIMINGS = join(import.meta.dir, 'test-timings.json');
/** A file that takes longer runs only at full length. */
const FILE_MS_MAX = IS_FULL_LENGTH ? Number.POSITIVE_INFINITY : 9_000;

/** A list of files, one in a line. */
const PASSED_FILES = process.env.MUSTER_TEST_PASSED;
/** What test files import whose tests are shorter in a short run. */
const FULL_LENGTH_MODULE = 'support/full-length.ts';

/** Writes the files that passed, and would do no more at full length. */
async function writePassed(list: string, { failures, reported }: Run): Promise<void> {
  const failed = new Set(failures.map(({ file }) => file));
  const passed: string[] = [];
  for (const { file, has_passed_whole } of reported) {
    const is_shortened = (await Bun.file(file).text()).includes(FULL_LENGTH_MODULE);
    if (has_passed_whole && !failed.has(file) && !is_shortened) passed.push(`${file}\n`);
  }
  await Bun.write(list, passed.join(''));
}

async function readPassed(list: string): Promise<string[]> {
  return (await Bun.file(list).text()).split('\n').filter((line) => line !== '');
}

/**
 * Builds the executable for the suites that start the program, unless MUSTER_TEST_EXECUTABLE has one. It starts with a third
 * of the processor time of the source.
 */
async function buildExecutable(): Promise<string> {
  const known = process.env.MUSTER_TEST_EXECUTABLE;
  if (known !== undefined) return known;
  const building = Bun.spawn([process.execPath, '.ci/build.ts'], { stdout: 'ignore', stderr: 'inherit' });
  if ((await building.exited) !== 0) throw new Error('The executable could not be built: see above.');
  return 'dist/muster';
}

interface Run {
  reported: ReportedFile[];
  failures: Failure[];
  counts: number[];
  /** A process of it ended before its last test, or it failed although no test did. */
  is_broken: boolean;
}

interface RunOptions {
  files: string[];
  executable: string;
  workers: number;
}

/** Runs the files in workers that keep their modules, or in one process. */
async function runFiles({ files, executable, workers }: RunOptions): Promise<Run> {
  const report = join(reports, `${crypto.randomUUID()}.xml`);
  const options = ['--timeout=300000', '--only-failures', '--reporter=junit', `--reporter-outfile=${report}`];
  if (workers > 1) options.push(`--parallel=${workers}`, '--no-isolate', `--timings=${TIMINGS}`);
  const command = [process.execPath, 'test', ...options, ...files.map((file) => `./${file}`)];
  const env = { ...process.env, ...COMPILES_RARELY, MUSTER_TEST_EXECUTABLE: executable, MUSTER_TEST_KEEPERS: keepers };
  // A file, because a process that a killed worker leaves behind would keep a pipe open.
  const stderr = Bun.file(`${report}.err`);
  const running = Bun.spawn(command, { stdout: 'ignore', stderr, env });
  const limit = setTimeout(() => {
    for (const pid of [...(readChildren(running.pid) ?? []), running.pid]) signalProcess(pid, 'SIGKILL');
  }, RUN_MS_MAX);
  const code = await running.exited;
  clearTimeout(limit);
  await awaitKeepers();
  const output = await stderr.text();
  const counts = COUNTS.map((what) => Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(output)?.[1] ?? 0));
  const report_text = await Bun.file(report)
    .text()
    .catch(() => '');
  const reported = filesIn(report_text);
  const failures = failuresIn(output);
  if (code !== 0) await printOutput(output, failures);
  if (IS_ALL_REQUIRED) failures.push(...missedIn(report_text));
  const why = whyBroken({ output, failures, how: String(running.signalCode ?? `code ${code}`), is_failed: code !== 0 });
  if (why !== undefined) await Bun.write(Bun.stdout, `\nThe run (files: ${files.length}) failed: ${why}.\n`);
  return { reported, failures, counts, is_broken: why !== undefined };
}

interface Ended {
  output: string;
  failures: Failure[];
  how: string;
  is_failed: boolean;
}

/** Returns why a run says nothing about some of its tests; undefined if it does. */
function whyBroken({ output, failures, how, is_failed }: Ended): string | undefined {
  if (!hasEnded(output)) return `it ended with ${how} before its last test`;
  if (failures.some(({ is_crash }) => is_crash)) return 'a worker ended before its last test';
  return is_failed && failures.length === 0 ? `it ended with ${how}, although no test failed` : undefined;
}

/** Prints the output of the files that failed; if none did, what the run printed last. */
async function printOutput(output: string, failures: Failure[]): Promise<void> {
  const failed = new Set(failures.map(({ file }) => file));
  const parts = outputByFile(output).filter(({ file }) => failed.has(file));
  const texts = parts.length > 0 ? parts.map(({ file, text }) => `${file}:\n${shorten(text)}`) : [shorten(output)];
  await Bun.write(Bun.stdout, texts.join('\n'));
}

const shorten = (output: string): string => output.slice(-OUTPUT_CHARACTERS_MAX);

/** Waits until the keepers of the tests' databases, which outlive their workers, have removed what these left. */
async function awaitKeepers(): Promise<void> {
  for (const started = performance.now(); (await readdir(keepers)).length > 0; await Bun.sleep(20)) {
    if (performance.now() - started < CLEANED_WITHIN_MS) continue;
    await Bun.write(Bun.stdout, `\nAfter ${CLEANED_WITHIN_MS} ms, databases or files of the tests were left.\n`);
    return;
  }
}

/** Returns the tests that were skipped although the machine should have all that tests need. */
function missedIn(report: string): Failure[] {
  return skippedIn(report)
    .filter(({ file, name }) => !MAY_BE_SKIPPED.some((one) => one.test(`${file}: ${name}`)))
    .map(({ file, name }) => ({ file, what: `skipped, although all tests are required: ${name}`, is_test: false }));
}

/** Runs the files with failures once more, each alone, unless they are many. Returns which of them failed again. */
async function runFailedAgain({ failures: first_failures }: Run): Promise<Map<string, boolean>> {
  const files = [...new Set(first_failures.map(({ file }) => file))];
  const again = new Map<string, boolean>();
  if (files.length > RUN_AGAIN_MAX) return again;
  for (const file of files) {
    const { failures, is_broken } = await runFiles({ files: [file], executable, workers: 1 });
    again.set(file, is_broken || failures.length > 0);
  }
  return again;
}

const started = performance.now();
const executable = await buildExecutable();
const reports = await mkdtemp(join(tmpdir(), 'muster-tests-'));
/** The directory in which each keeper has a file while there is something to remove. */
const keepers = join(reports, 'keepers');
await mkdir(keepers);
const all_files = [...new Bun.Glob('tests/**/*.test.ts').scanSync('.')]
  .map((file) => file.replaceAll('\\', '/'))
  .toSorted();
const timings: { files: Record<string, number> } = await Bun.file(TIMINGS).json();
const already_passed = new Set(IS_FULL_LENGTH && PASSED_FILES !== undefined ? await readPassed(PASSED_FILES) : []);
const files = all_files.filter((file) => (timings.files[file] ?? 0) <= FILE_MS_MAX && !already_passed.has(file));
const workers = Math.min(WORKERS_MAX, availableParallelism() + WORKERS_BEYOND_PROCESSORS);
const run = await runFiles({ files, executable, workers });
if (!IS_FULL_LENGTH && PASSED_FILES !== undefined) await writePassed(PASSED_FILES, run);
const again = await runFailedAgain(run);
await rm(reports, { recursive: true });
const seconds = Math.round((performance.now() - started) / 1_000);
const slowest = run.reported
  .toSorted((one, other) => other.seconds - one.seconds)
  .slice(0, SLOWEST_LISTED)
  .map((one) => `${one.seconds.toFixed(0).padStart(4)} s ${one.file}\n`);
const { failures } = run;
const hasPassed = ({ file }: Failure) => again.get(file) === false;
const lines = failures.map((one) => `(${hasPassed(one) ? 'passed alone' : 'fail'}) ${one.file}: ${one.what}\n`);
const failed = failures.filter((one) => !hasPassed(one));
const [passes = 0, skips = 0, fails = 0] = run.counts;
const passed_alone = failures.filter((one) => one.is_test && hasPassed(one)).length;
const sums = [`${passes + passed_alone} pass`, `${skips} skip`, `${Math.max(0, fails - passed_alone)} fail`];
await Bun.write(Bun.stdout, `\nThe files that took longest:\n${slowest.join('')}`);
const left_out = all_files.length - files.length;
if (left_out > 0) {
  const why = IS_FULL_LENGTH
    ? `the ${left_out} files that passed in a short run, where they do as much.`
    : `the ${left_out} files that take longest. MUSTER_TEST_LONG=1 runs them too.`;
  await Bun.write(Bun.stdout, `\nNot run: ${why}\n`);
}
await Bun.write(Bun.stdout, `\n${files.length} files, in ${seconds} s:\n${lines.join('')} ${sums.join('\n ')}\n`);
// A process that ended early may have done more than its tests show, whichever of them pass alone.
process.exit(failed.length > 0 || run.is_broken ? 1 : 0);
