import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { nextUser, openTestRuntime, orderOf, RUNTIMES, type TestRuntime } from '../../support/runtimes.ts';
import { waitFor } from '../../support/wait.ts';

describe.each(RUNTIMES)('a server by the runtime $name', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('is absent until it is started', async () => {
    const stranger = { server_id: crypto.randomUUID(), process: undefined, user_id: nextUser() };
    expect(await opened.observe(stranger)).toEqual({ is: 'absent' });
  });

  test('cannot be started from a place that is not there; the reason is said', async () => {
    const order = await orderOf(opened.directory, '');
    const build = { ...order.build, directory: join(opened.directory, 'nowhere') };
    const refusal = await rejectionOf(Error, opened.runtime.start({ ...order, build }));
    expect(refusal.message).toContain('ENOENT');
    const server = { server_id: order.server_id, process: undefined, user_id: undefined };
    expect(await opened.observe(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
    await opened.remove(server);
    expect(await opened.observe(server)).toEqual({ is: 'absent' });
  });

  test('runs as the process that was said, and once however often it is started', async () => {
    const order = await orderOf(opened.directory, 'echo "started $$"; exec sleep 600', { user_id: nextUser() });
    const { server_id, user_id } = order;
    const process = await opened.runtime.start(order);
    const server: ServerHandle = { server_id, user_id, process };
    await waitFor(async () => (await opened.output(server)) !== '', 'its first words');
    expect(await opened.runtime.start(order)).toEqual(process);
    expect(await opened.runtime.start(order)).toEqual(process);
    expect(await opened.observe(server)).toEqual({ is: 'running', process });
    expect(await opened.output(server)).toMatch(/^started \d+\n$/);
    await opened.remove(server);
  });

  const ENDS = [
    ['exit 0', { exit_code: 0, exit_signal: null }],
    ['exit 3', { exit_code: 3, exit_signal: null }],
    ['exit 255', { exit_code: 255, exit_signal: null }],
    ['kill -SEGV $$', { exit_code: null, exit_signal: 'SIGSEGV' }],
    ['kill -ABRT $$', { exit_code: null, exit_signal: 'SIGABRT' }],
    ['kill -KILL $$', { exit_code: null, exit_signal: 'SIGKILL' }],
    ['kill -TERM $$', { exit_code: null, exit_signal: 'SIGTERM' }],
  ] as const;
  test.each(ENDS)('that ends by "%s" is seen to have', async (script, end) => {
    const server = await opened.run(script, { user_id: nextUser() });
    expect(await opened.endOf(server)).toEqual({ is: 'ended', ...end });
  });

  const MISSING = [
    ['is not in the build', ['./server'], 127, /\.\/server: (not found|No such file)/],
    ['is nowhere on the path', ['no-such-program', '--fast'], 127, /no-such-program: (command )?not found/],
    ['may not be executed', ['./run.sh'], 126, /\.\/run\.sh: Permission denied/],
    ['is a directory', ['/tmp'], 126, /\/tmp: (Permission denied|Is a directory)/],
  ] satisfies [string, string[], number, RegExp][];
  test.each(MISSING)('whose program %s ends and says so', async (_, command, exit_code, sentence) => {
    const order = await orderOf(opened.directory, '');
    const server = await opened.run('', { ...order, build: { ...order.build, command } });
    expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code, exit_signal: null });
    expect(await opened.output(server, 'std_err')).toMatch(sentence);
  });

  test('that ends is told of', async () => {
    let told = 0;
    const { run, runtime, endOf } = opened;
    runtime.onChange(() => {
      told += 1;
    });
    const server = await run('exit 5');
    await waitFor(() => told > 0, 'word of it');
    expect((await endOf(server)).exit_code).toBe(5);
  });

  test('that is asked to end does so in its own way', async () => {
    const script = `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`;
    const server = await opened.run(script, { user_id: nextUser() });
    await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
    opened.runtime.stop(server);
    expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code: 7, exit_signal: null });
    expect(await opened.output(server)).toBe('ready\nbye\n');
    // Asked too late, it is none the worse.
    opened.runtime.stop(server);
  });

  test('that does not hear is killed, and no exit code is made up for it', async () => {
    const server = await opened.run(`trap 'echo deaf' TERM; echo ready; while :; do sleep 0.01; done`);
    await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
    opened.runtime.stop(server);
    await waitFor(async () => (await opened.output(server)).includes('deaf'), 'it to have heard');
    expect((await opened.observe(server)).is).toBe('running');
    await opened.kill(server);
    expect(await opened.observe(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
    await opened.kill(server);
  });

  test('stands in its build, is given its arguments as they are, and writes to two files', async () => {
    const words = ['two words', '$(id)', "it's", '"', '\\', '*', 'line\nbreak', '-n', 'ünïcode'];
    const script = `pwd; printf '<%s>' "$@"; echo oops >&2`;
    const server = await opened.run(script, { arguments: words, user_id: nextUser() });
    await opened.endOf(server);
    const [place, ...rest] = (await opened.output(server)).split('\n');
    expect(place).toStartWith(join(opened.directory, 'builds/'));
    expect(rest.join('\n')).toBe(words.map((word) => `<${word}>`).join(''));
    expect(await opened.output(server, 'std_err')).toBe('oops\n');
  });

  test('of a script is run by our own executable, which installs nothing and reads no file of ours', async () => {
    const script = 'console.log(process.env.LEAK ?? "clean", Bun.argv.slice(2)); const n: number = 3; process.exit(n);';
    const order = await orderOf(opened.directory, '', { arguments: ['a', 'b'], user_id: nextUser() });
    const { directory } = order.build;
    await Bun.write(join(directory, 'main.ts'), script);
    await Bun.write(join(directory, '.env'), 'LEAK=dirty');
    const server = await opened.run('', { ...order, build: { kind: 'javascript', directory, command: ['main.ts'] } });
    expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code: 3, exit_signal: null });
    expect(await opened.output(server)).toBe('clean [ "a", "b" ]\n');
  });

  test('that is removed leaves nothing, whether it ran, ended, or never was', async () => {
    const folder = ({ server_id }: ServerHandle) => join(opened.directory, 'servers', server_id);
    const running = await opened.run('mkdir deep $HOME/deep; echo x > $HOME/deep/file; exec sleep 600');
    const ended = await opened.run('exit 0', { user_id: nextUser() });
    await opened.endOf(ended);
    const never = { server_id: crypto.randomUUID(), process: undefined, user_id: nextUser() };
    for (const server of [running, ended, never, running]) {
      await opened.remove(server);
      expect(existsSync(folder(server))).toBe(false);
      expect(await opened.observe({ ...server, process: undefined })).toEqual({ is: 'absent' });
    }
  });
});
