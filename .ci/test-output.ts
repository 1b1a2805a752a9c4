// Reads what `bun test` prints, and the report that it writes.

/** A test that failed, or something else that makes a run fail. */
export interface Failure {
  file: string;
  what: string;
  /** Whether `bun test` counts it as a test that failed. It does not count an error between tests. */
  is_test: boolean;
  /** Whether its process ended before the test. */
  is_crash?: boolean;
}

/** Returns the output of `bun test` by files. It prints the name of a file before the output of its tests. */
export function outputByFile(output: string): { file: string; text: string }[] {
  const parts = ['unknown file', ...output.split(/^(tests\/.*\.test\.ts):$/m)];
  return parts.flatMap((file, index) => (index % 2 === 0 ? { file, text: parts[index + 1] ?? '' } : []));
}

/** Returns the failed tests in the output of `bun test`, each with its file. */
export function failuresIn(output: string): Failure[] {
  return outputByFile(output).flatMap(({ file, text }) => failuresOf(file, text));
}

function failuresOf(file: string, text: string): Failure[] {
  const failures: Failure[] = [];
  for (const line of text.split('\n')) {
    const [, crashed, how] = /^✗ (\S+) \((worker crashed.*)\)$/.exec(line) ?? [];
    if (crashed !== undefined && how !== undefined)
      failures.push({ file: crashed, what: how, is_test: true, is_crash: true });
    if (line.startsWith('(fail) ')) failures.push({ file, what: line.slice('(fail) '.length), is_test: true });
    if (line.startsWith('# Unhandled error'))
      failures.push({ file, what: 'an error that no test awaits', is_test: false });
  }
  return failures;
}

/** Returns whether `bun test` ran all its files: only then it prints how many. */
export function hasEnded(output: string): boolean {
  return /^Ran \d+ tests? across \d+ files?\./m.test(output);
}

export interface ReportedFile {
  file: string;
  seconds: number;
  /** No test of it failed or was skipped. */
  has_passed_whole: boolean;
}

/** Returns the files in the report of `bun test`. */
export function filesIn(report: string): ReportedFile[] {
  const file_results = report.matchAll(
    /<testsuite name="([^"]+)" file="\1" [^>]*?failures="(\d+)" skipped="(\d+)" time="([\d.]+)"/g,
  );
  return [...file_results].map(([, file = '', failures, skipped, seconds]) => ({
    file,
    seconds: Number(seconds),
    has_passed_whole: Number(failures) + Number(skipped) === 0,
  }));
}

/** Returns the skipped tests in the report of `bun test`. */
export function skippedIn(report: string): { file: string; name: string }[] {
  const skipped = report.matchAll(
    /<testcase name="([^"]*)" classname="([^"]*)" [^>]*?file="([^"]+)"[^>]*>\s*<skipped/g,
  );
  return [...skipped].map(([, name = '', suite = '', file = '']) => ({ file, name: `${suite} > ${name}` }));
}
