import { describe, expect, test } from 'bun:test';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const RUNNER = resolve(import.meta.dir, '../.ci/test.ts');

const PASSES = "test('passes', () => {});";
const FAILS = "test('fails', () => { throw new Error('as it should'); });";
const FAILS_ONCE = `test('fails once', async () => {
  if (await Bun.file('has-run').exists()) return;
  await Bun.write('has-run', '');
  throw new Error('the first time');
});`;
const CRASHES = "test('crashes', () => process.kill(process.pid, 'SIGKILL'));";
const SKIPPED = "test.skip('needs what is not here', () => {});";
const IN_CI = { MUSTER_TEST_LONG: '1', MUSTER_TEST_REQUIRED: '1' };

/** Runs test files, named by their position, as `bun run test` does. */
async function run(sources: string[], settings: Record<string, string> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'muster-test-run-'));
  await mkdir(join(directory, 'tests'));
  for (const [index, source] of sources.entries())
    await Bun.write(join(directory, `tests/${index}.test.ts`), `import { test } from 'bun:test';\n${source}`);
  const { PATH = '', HOME = '' } = process.env;
  const running = Bun.spawn([process.execPath, RUNNER], {
    cwd: directory,
    env: { PATH, HOME, MUSTER_TEST_EXECUTABLE: 'none', MUSTER_TEST_PASSED: join(directory, 'passed'), ...settings },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const output = await new Response(running.stdout).text();
  const exit_code = await running.exited;
  const list = Bun.file(join(directory, 'passed'));
  const passed = (await list.exists()) ? (await list.text()).trim().split('\n') : [];
  await rm(directory, { recursive: true });
  return { exit_code, output, passed };
}

describe('the test command', () => {
  test('fails if a test fails, also alone', async () => {
    const { exit_code, output } = await run([PASSES, FAILS]);
    expect(exit_code).toBe(1);
    expect(output).toMatch(/\n\(fail\) tests\/1\.test\.ts: fails \[.*\]\n 1 pass\n 0 skip\n 1 fail\n$/);
  });

  test('passes if a failed test passes alone', async () => {
    const { exit_code, output } = await run([PASSES, FAILS_ONCE]);
    expect(exit_code).toBe(0);
    expect(output).toMatch(/\n\(passed alone\) tests\/1\.test\.ts: fails once \[.*\]\n 2 pass\n 0 skip\n 0 fail\n$/);
  });

  test('fails if its process ends early, although the test that failed before passes alone', async () => {
    const { exit_code, output } = await run([
      `${FAILS_ONCE}\ntest('ends the process the first time', async () => {
      if (await Bun.file('has-ended').exists()) return;
      await Bun.write('has-ended', '');
      process.kill(process.pid, 'SIGKILL');
    });`,
    ]);
    expect(exit_code).toBe(1);
    expect(output).toContain('The run (files: 1) failed: it ended with SIGKILL before its last test.');
  });

  test('fails if its process ends early and no test failed', async () => {
    const { exit_code, output } = await run([PASSES, CRASHES]);
    expect(exit_code).toBe(1);
    expect(output).toContain('The run (files: 2) failed: a worker ended before its last test.');
  });

  test('names the files that passed whole, without those of skipped tests', async () => {
    const { exit_code, passed } = await run([PASSES, SKIPPED, FAILS]);
    expect([exit_code, passed]).toEqual([1, ['tests/0.test.ts']]);
  });

  test('fails at full length if a test was skipped, where all that tests need is required', async () => {
    const passed = { MUSTER_TEST_PASSED: '/dev/null' };
    const required = await run([PASSES, SKIPPED], { ...IN_CI, ...passed });
    expect(required.exit_code).toBe(1);
    expect(required.output).toContain('(fail) tests/1.test.ts: skipped, although all tests are required: ');
    expect((await run([PASSES, SKIPPED], { MUSTER_TEST_LONG: '1', ...passed })).exit_code).toBe(0);
    expect((await run([PASSES, SKIPPED], { MUSTER_TEST_REQUIRED: '1' })).exit_code).toBe(0);
  });
});
