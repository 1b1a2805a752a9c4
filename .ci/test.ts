// Runs the suites: builds the executable, then runs `bun test` in three parts more than there are processors (at full
// length in one more), since much of it waits; each part has a PostgreSQL of its own. The files that take longest run
// only if MUSTER_TEST_LONG is set, and other long tests are shorter without it:
// see docs/decisions/0052-what-the-test-command-runs.md.
// MUSTER_TEST_PASSED names a file: a short run writes the test files to it that passed at full length, and a run at
// full length does not run those again. Prints the output of each part that failed; then the files that took longest,
// the failures by file and name, and the sum as `bun test` gives it. Failed files run once more, alone, as long as
// they are few: see docs/decisions/0051-failed-files-run-again.md. Where MUSTER_TEST_REQUIRED is set, as in CI, a test that
// is skipped at full length counts as failed, because the machine lacks what it needs.
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Failure, failuresIn, filesIn, hasEnded, type ReportedFile, skippedIn } from './test-output.ts';

const IS_FULL_LENGTH = process.env.MUSTER_TEST_LONG !== undefined;
/** At full length less, since browsers, containers and a Kubernetes run beside the tests. */
const PARTS_BEYOND_PROCESSORS = IS_FULL_LENGTH ? 1 : 3;
const PARTS_MAX = 6;
/** Some times what a part takes on a busy machine: `bun test` does not interrupt a test that never awaits. */
const PART_MS_MAX = (IS_FULL_LENGTH ? 120 : 30) * 60_000;
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
/** Enough to read what failed, also in a flood of errors. */
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

/** Seconds that the longest files take beside the others, on two processors; at full length if that is longer. */
const SECONDS: Record<string, number> = {
  'tests/features/servers/kubernetes/cluster.test.ts': 570,
  'tests/features/servers/engine.test.ts': 560,
  'tests/faults/machines.test.ts': 480,
  'tests/journeys/deploy-kubernetes.test.ts': 280,
  'tests/features/lobbies/model.test.ts': 250,
  'tests/faults/machines-judged.test.ts': 190,
  'tests/journeys/releases.test.ts': 190,
  'tests/faults/isolation.test.ts': 140,
  'tests/features/lobbies/rows.test.ts': 110,
  'tests/journeys/ctrl-c.test.ts': 110,
  'tests/faults/churn.test.ts': 100,
  'tests/faults/watch-oracle.test.ts': 100,
  'tests/journeys/kubernetes.test.ts': 60,
  'tests/faults/gateway.test.ts': 45,
  'tests/cli/uploads.test.ts': 40,
  'tests/faults/stop.test.ts': 40,
  'tests/cli/slow-logs.test.ts': 33,
  'tests/cli/deploy.test.ts': 30,
  'tests/cli/github-actions.test.ts': 30,
  'tests/cli/test-command.test.ts': 30,
  'tests/features/certificates/acme.test.ts': 30,
  'tests/features/servers/port-taken.test.ts': 29,
  'tests/faults/verification.test.ts': 25,
  'tests/features/lobbies/warm.test.ts': 25,
  'tests/features/lobbies/queue.test.ts': 24,
  'tests/features/servers/runtime.test.ts': 24,
  'tests/cli/cli.test.ts': 22,
  'tests/faults/database.test.ts': 21,
  'tests/features/servers/quota.test.ts': 21,
  'tests/features/gateway/presence.test.ts': 20,
  'tests/features/gateway/traffic.test.ts': 20,
  'tests/journeys/public-ports.test.ts': 20,
  'tests/features/servers/restarts.test.ts': 19,
  'tests/journeys/room.test.ts': 19,
  'tests/faults/slow-readers.test.ts': 18,
  'tests/features/bootstrap/first-start.test.ts': 18,
  'tests/features/servers/disk-limit.test.ts': 18,
  'tests/contract/csharp-client.test.ts': 17,
  'tests/contract/documents.test.ts': 17,
  'tests/contract/limits.test.ts': 17,
  'tests/faults/many-connections.test.ts': 17,
  'tests/faults/restarts.test.ts': 17,
  'tests/features/captcha/api.test.ts': 17,
  'tests/faults/room.test.ts': 16,
  'tests/features/lobbies/players.test.ts': 16,
  'tests/features/servers/ending.test.ts': 16,
  'tests/cli/bots.test.ts': 15,
  'tests/cli/deploy-switch.test.ts': 15,
  'tests/cli/dev.test.ts': 15,
  'tests/features/lobbies/parties.test.ts': 15,
  'tests/features/lobbies/receipts.test.ts': 15,
  'tests/features/machines/judgement.test.ts': 15,
  'tests/features/servers/logs.test.ts': 15,
  'tests/features/servers/process/limits.test.ts': 15,
  'tests/features/sites/upload.test.ts': 15,
  'tests/journeys/backup.test.ts': 15,
  'tests/journeys/readme.test.ts': 15,
  'tests/cli/scripts.test.ts': 14,
  'tests/contract/watch-refusals.test.ts': 14,
  'tests/contract/watch.test.ts': 14,
  'tests/features/lobbies/two-machines.test.ts': 14,
  'tests/features/servers/container/leftovers.test.ts': 14,
  'tests/journeys/cli-json.test.ts': 14,
  'tests/journeys/cli-live-flows.test.ts': 14,
  'tests/platform/objects-s3.test.ts': 14,
  'tests/cli/proxies.test.ts': 13,
  'tests/faults/disk-full.test.ts': 13,
  'tests/faults/game-server.test.ts': 13,
  'tests/faults/late-notifications.test.ts': 13,
  'tests/features/cdn/passwords.test.ts': 13,
  'tests/features/servers/container/environment.test.ts': 13,
  'tests/features/servers/kubernetes/service.test.ts': 13,
  'tests/features/servers/usage.test.ts': 13,
  'tests/journeys/first-start.test.ts': 13,
  'tests/contract/watch-changes.test.ts': 12,
  'tests/faults/kill.test.ts': 12,
  'tests/features/lobbies/clients.test.ts': 12,
  'tests/features/lobbies/many-lobbies.test.ts': 12,
  'tests/features/lobbies/rounds.test.ts': 12,
  'tests/features/lobbies/seats.test.ts': 12,
  'tests/features/lobbies/unready.test.ts': 12,
  'tests/features/lobbies/waiting.test.ts': 12,
  'tests/features/servers/life.test.ts': 12,
  'tests/features/servers/log-retention.test.ts': 12,
  'tests/features/servers/restart.test.ts': 12,
  'tests/platform/limits-lost-store.test.ts': 12,
  'tests/platform/socket-tokens.test.ts': 12,
  'tests/cli/terminal.test.ts': 11,
  'tests/cli/version-check.test.ts': 11,
  'tests/contract/tenants.test.ts': 11,
  'tests/faults/database-unreachable.test.ts': 11,
  'tests/faults/matchmaker-race.test.ts': 11,
  'tests/features/builds/images-hostile.test.ts': 11,
  'tests/features/gateway/sockets.test.ts': 11,
  'tests/features/lobbies/deadlines.test.ts': 11,
  'tests/features/lobbies/queue-race.test.ts': 11,
  'tests/features/namespaces/domains.test.ts': 11,
  'tests/features/retention/history.test.ts': 11,
  'tests/features/servers/isolation.test.ts': 11,
  'tests/features/servers/killed.test.ts': 11,
  'tests/journeys/cli-flows.test.ts': 11,
  'tests/journeys/cli-terminal.test.ts': 11,
  'tests/cli/game-commands.test.ts': 10,
  'tests/client/logs.test.ts': 10,
  'tests/client/resuming.test.ts': 10,
  'tests/faults/backup.test.ts': 10,
  'tests/faults/first-start.test.ts': 10,
  'tests/faults/mass-end.test.ts': 10,
  'tests/features/builds/unpack-properties.test.ts': 10,
  'tests/features/gateway/relays-lobbies.test.ts': 10,
  'tests/features/lobbies/queue-seats.test.ts': 10,
  'tests/features/servers/log-search.test.ts': 10,
  'tests/features/servers/starting-slow.test.ts': 10,
  'tests/features/verification/answers.test.ts': 10,
  'tests/features/verification/payload.test.ts': 10,
  'tests/platform/http-routes.test.ts': 10,
};
const SECONDS_USUALLY = 3;

/** A file that takes longer runs only at full length. */
const SECONDS_MAX = IS_FULL_LENGTH ? Number.POSITIVE_INFINITY : 9;

/** A list of files, one in a line. */
const PASSED_FILES = process.env.MUSTER_TEST_PASSED;
/** What test files import whose tests are shorter in a short run. */
const FULL_LENGTH_MODULE = 'support/full-length.ts';

/** Short files that a part takes at a time once it has run its own. */
const TAKEN_AT_ONCE = 12;

const secondsOf = (file: string) => SECONDS[file] ?? SECONDS_USUALLY;

/**
 * Distributes the files over this many parts, the longest first, each to the part with the least to do. Half of the short
 * files are left over: parts that are done early take them.
 */
function dealFiles(files: string[], parts: number): { dealt: string[][]; left_over: string[] } {
  const dealt = Array.from({ length: parts }, () => ({ files: [] as string[], seconds: 0 }));
  const short = files.filter((file) => SECONDS[file] === undefined);
  const left_over = short.slice(Math.ceil(short.length / 2));
  const own = files.filter((file) => !left_over.includes(file));
  for (const file of own.toSorted((one, other) => secondsOf(other) - secondsOf(one))) {
    const [least] = dealt.toSorted((one, other) => one.seconds - other.seconds);
    least?.files.push(file);
    if (least) least.seconds += secondsOf(file);
  }
  return { dealt: dealt.map((part) => part.files), left_over };
}

/** Writes the files that passed, and would do no more at full length. */
async function writePassed(list: string, parts: Part[]): Promise<void> {
  const failed = new Set(parts.flatMap(({ failures }) => failures.map(({ file }) => file)));
  const passed: string[] = [];
  for (const { file, has_passed_whole } of parts.flatMap(({ reported }) => reported)) {
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

interface Part {
  reported: ReportedFile[];
  failures: Failure[];
  counts: number[];
  /** Its process ended before its last test, or failed although no test did. */
  is_broken: boolean;
}

interface PartOptions {
  files: string[];
  executable: string;
  /** The path of the report that `bun test` writes. */
  report: string;
}

async function runPart({ files, executable, report }: PartOptions): Promise<Part> {
  const options = ['--timeout=300000', '--only-failures', '--reporter=junit', `--reporter-outfile=${report}`];
  const command = [process.execPath, 'test', ...options, ...files.map((file) => `./${file}`)];
  const env = {
    ...process.env,
    ...COMPILES_RARELY,
    MUSTER_TEST_EXECUTABLE: executable,
  };
  const limits = { timeout: PART_MS_MAX, killSignal: 'SIGKILL' } as const;
  // Files, because a process that a killed part leaves behind would keep a pipe open.
  const [stdout, stderr] = [Bun.file(`${report}.out`), Bun.file(`${report}.err`)];
  const running = Bun.spawn(command, { stdout, stderr, env, ...limits });
  const code = await running.exited;
  const [out, err] = await Promise.all([stdout.text(), stderr.text()]);
  const counts = COUNTS.map((what) => Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(err)?.[1] ?? 0));
  const output = (out + err).slice(-OUTPUT_CHARACTERS_MAX);
  if (code !== 0) await Bun.write(Bun.stdout, output);
  const report_text = await Bun.file(report)
    .text()
    .catch(() => '');
  const reported = filesIn(report_text);
  const failures = failuresIn(err);
  if (IS_ALL_REQUIRED) failures.push(...missedIn(report_text));
  const is_broken = !hasEnded(err) || (code !== 0 && failures.length === 0);
  if (is_broken) {
    const when = hasEnded(err) ? '' : ', before its last test';
    await Bun.write(
      Bun.stdout,
      `\nA part (files: ${files.length}) ended with ${running.signalCode ?? `code ${code}`}${when}.\n`,
    );
  }
  return { reported, failures, counts, is_broken };
}

/** Returns the tests that were skipped although the machine should have all that tests need. */
function missedIn(report: string): Failure[] {
  return skippedIn(report)
    .filter(({ file, name }) => !MAY_BE_SKIPPED.some((one) => one.test(`${file}: ${name}`)))
    .map(({ file, name }) => ({ file, what: `skipped, although all tests are required: ${name}`, is_test: false }));
}

/** Runs the files with failures once more, each alone, unless they are many. Returns which of them failed again. */
async function runFailedAgain(all: Part[]): Promise<Map<string, boolean>> {
  const files = [...new Set(all.flatMap(({ failures }) => failures.map(({ file }) => file)))];
  const again = new Map<string, boolean>();
  if (files.length > RUN_AGAIN_MAX) return again;
  for (const file of files) {
    const report = join(reports, `${crypto.randomUUID()}.xml`);
    const { failures, is_broken } = await runPart({ files: [file], executable, report });
    again.set(file, is_broken || failures.length > 0);
  }
  return again;
}

const started = performance.now();
const executable = await buildExecutable();
const reports = await mkdtemp(join(tmpdir(), 'muster-tests-'));
const all_files = [...new Bun.Glob('tests/**/*.test.ts').scanSync('.')]
  .map((file) => file.replaceAll('\\', '/'))
  .toSorted();
const already_passed = new Set(IS_FULL_LENGTH && PASSED_FILES !== undefined ? await readPassed(PASSED_FILES) : []);
const files = all_files.filter((file) => secondsOf(file) <= SECONDS_MAX && !already_passed.has(file));
const { dealt, left_over } = dealFiles(files, Math.min(PARTS_MAX, availableParallelism() + PARTS_BEYOND_PROCESSORS));
const parts: Part[] = [];
await Promise.all(
  dealt.map(async (own_files) => {
    for (let next = own_files; next.length > 0; next = left_over.splice(0, TAKEN_AT_ONCE)) {
      parts.push(await runPart({ files: next, executable, report: join(reports, `${crypto.randomUUID()}.xml`) }));
    }
  }),
);
if (!IS_FULL_LENGTH && PASSED_FILES !== undefined) await writePassed(PASSED_FILES, parts);
const again = await runFailedAgain(parts);
await rm(reports, { recursive: true });
const seconds = Math.round((performance.now() - started) / 1_000);
const slowest = parts
  .flatMap(({ reported }) => reported)
  .toSorted((one, other) => other.seconds - one.seconds)
  .slice(0, SLOWEST_LISTED)
  .map((one) => `${one.seconds.toFixed(0).padStart(4)} s ${one.file}\n`);
const failures = parts.flatMap((part) => part.failures);
const hasPassed = ({ file }: Failure) => again.get(file) === false;
const lines = failures.map((one) => `(${hasPassed(one) ? 'passed alone' : 'fail'}) ${one.file}: ${one.what}\n`);
const failed = failures.filter((one) => !hasPassed(one));
const total = (what: (typeof COUNTS)[number]) =>
  parts.reduce((sum, { counts }) => sum + (counts[COUNTS.indexOf(what)] ?? 0), 0);
const passed_alone = failures.filter((one) => one.is_test && hasPassed(one)).length;
const sums = [`${total('pass') + passed_alone} pass`, `${total('skip')} skip`, `${total('fail') - passed_alone} fail`];
await Bun.write(Bun.stdout, `\nThe files that took longest:\n${slowest.join('')}`);
const left_out = all_files.length - files.length;
if (left_out > 0) {
  const why = IS_FULL_LENGTH
    ? `the ${left_out} files that passed in a short run, where they do as much.`
    : `the ${left_out} files that take longest. MUSTER_TEST_LONG=1 runs them too.`;
  await Bun.write(Bun.stdout, `\nNot run: ${why}\n`);
}
await Bun.write(Bun.stdout, `\nAll ${dealt.length} parts, in ${seconds} s:\n${lines.join('')} ${sums.join('\n ')}\n`);
// What a part did that did not end is unknown, whichever of its tests pass alone.
const is_bad = failed.length > 0 || parts.some(({ is_broken }) => is_broken);
process.exit(is_bad ? 1 : 0);
