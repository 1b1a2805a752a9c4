import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { ServerHandle } from '../../../src/features/servers/runtimes/runtime.ts';
import { rejectionOf } from '../refusal.ts';
import { waitFor } from '../wait.ts';
import { HOST, openTestRuntime, type RuntimeKind, type TestRuntime } from './runtimes.ts';

/** Servers that get a signal during their start. */
const SIGNALS = 20;
/** A container of an engine takes some seconds to start on a busy machine, and a late test ends the engine too. */
const SIGNALS_TIMEOUT_MS = 300_000;
const PIECE = { bytes_max: 1_024, backlog_bytes_max: 1024 ** 2 };

/** Describes what holds for every runtime. */
export function describeRuntime(kind: RuntimeKind): void {
  describe.skipIf(kind.reason_without !== undefined)(`the runtime "${kind.name}": a server`, () => {
    let opened: TestRuntime;
    beforeAll(async () => {
      opened = await openTestRuntime(kind);
    });
    // A cluster has room for a few servers at a time.
    afterEach(() => opened.removeAll());
    afterAll(() => opened[Symbol.asyncDispose]());

    const unrecorded = ({ server_id }: ServerHandle): ServerHandle => ({ server_id, identity: undefined });

    test('is absent until it is started', async () => {
      expect(await opened.observe({ server_id: crypto.randomUUID(), identity: undefined })).toEqual({ is: 'absent' });
    });

    test('that cannot be started is refused with the reason, and leaves no process', async () => {
      const order = await opened.orderOf('');
      const build = { ...order.build, directory: join(opened.directory, 'nowhere') };
      const refusal = await rejectionOf(Error, opened.start({ ...order, build }));
      expect(refusal.message).toContain('ENOENT');
      const server = { server_id: order.server_id, identity: undefined };
      expect(await opened.observe(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
      await opened.remove(server);
      expect(await opened.observe(server)).toEqual({ is: 'absent' });
    });

    test('runs once, with one address, however often it is started', async () => {
      const order = await opened.orderOf('echo "started $$"; exec sleep 600');
      const server = await opened.start(order);
      const running = { is: 'running', identity: server.identity, host: kind.host ?? HOST } as const;
      await waitFor(async () => (await opened.output(server)) !== '', 'its first lines');
      expect(await opened.runtime.start(order)).toEqual(running);
      expect(await opened.runtime.start(order)).toEqual(running);
      expect(await opened.observe(server)).toEqual(running);
      expect(await opened.output(server)).toMatch(/^started \d+\n$/);
      // Its identity is stored in the database.
      const identity = JSON.parse(JSON.stringify(server.identity));
      expect(identity).toEqual(server.identity);
      expect(await opened.observe({ ...server, identity })).toEqual(running);
      expect((await opened.runtime.list()).map(({ server_id }) => server_id)).toContain(server.server_id);
      await opened.remove(server);
      expect((await opened.runtime.list()).map(({ server_id }) => server_id)).not.toContain(server.server_id);
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
    test.each(ENDS)('that ends by "%s" is seen to have ended that way until it is removed', async (script, end) => {
      const server = await opened.run(script);
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', ...end });
      await opened.kill(server);
      expect(await opened.observe(server)).toEqual({ is: 'ended', ...end });
      await opened.remove(server);
    });

    const MISSING = [
      ['is not in the build', ['./server'], 127, /\.\/server(:| failed:) (not found|No such file)/],
      [
        'is not on the PATH',
        ['no-such-program', '--fast'],
        127,
        /no-such-program(: (command )?not found| failed: No such file)/,
      ],
      ['is not executable', ['./run.sh'], 126, /\.\/run\.sh(:| failed:) Permission denied/],
      ['is a directory', ['/bin'], 126, /\/bin(:| failed:) (Permission denied|Is a directory)/],
    ] satisfies [string, string[], number, RegExp][];
    test.each(MISSING)('whose program %s ends, and its log says so', async (_, command, exit_code, sentence) => {
      const order = await opened.orderOf('');
      const server = await opened.run('', { ...order, build: { ...order.build, command } });
      const missing = kind.missing_program ?? { exit_code, sentence };
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: missing.exit_code, exit_signal: null });
      expect(await opened.output(server, 'std_err')).toMatch(missing.sentence);
    });

    test('that ends causes a report', async () => {
      let reports = 0;
      opened.runtime.onChange(() => {
        reports += 1;
      });
      const server = await opened.run('exit 5');
      await waitFor(() => reports > 0, 'the report');
      expect((await opened.waitForEnd(server)).exit_code).toBe(5);
    });

    test('that handles SIGTERM ends with its own exit code', async () => {
      const script = `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`;
      const server = await opened.run(script);
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await opened.stop(server);
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 7, exit_signal: null });
      expect(await opened.output(server)).toBe('ready\nbye\n');
      // A signal after its end has no effect.
      await opened.stop(server);
    });

    test(
      'gets SIGTERM only once it can handle it, also during its start',
      async () => {
        for (let time = 0; time < (kind.signals ?? SIGNALS); time += 1) {
          const server = await opened.run('exec sleep 600');
          await opened.stop(server);
          expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: 'SIGTERM' });
        }
      },
      SIGNALS_TIMEOUT_MS,
    );

    test('that ignores SIGTERM is killed, and gets no exit code', async () => {
      const server = await opened.run(`trap 'echo ignored' TERM; echo ready; while :; do sleep 0.01; done`);
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await opened.stop(server);
      await waitFor(async () => (await opened.output(server)).includes('ignored'), 'it to have received SIGTERM');
      expect((await opened.observe(server)).is).toBe('running');
      await opened.kill(server);
      expect(await opened.observe(server)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
      await opened.kill(server);
    });

    test('gets its arguments unchanged, and writes to two streams', async () => {
      const words = ['two words', '$(id)', "it's", '"', '\\', '*', 'line\nbreak', '-n', 'ünïcode'];
      const server = await opened.run(`printf '<%s>' "$@"; echo; echo oops >&2`, { arguments: words });
      await opened.waitForEnd(server);
      expect(await opened.output(server)).toBe(`${words.map((word) => `<${word}>`).join('')}\n`);
      expect(await opened.output(server, 'std_err')).toBe('oops\n');
    });

    test('has its output read in pieces, which continue where the last one was cut, also after a restart', async () => {
      const count = 5_000;
      const server = await opened.run(`seq 1 ${count}; exec sleep 600`);
      const expected = Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('');
      await waitFor(async () => (await opened.output(server)).length === expected.length, 'its output');
      let text = '';
      let from: string | undefined;
      for (let time = 0; text.length < expected.length; time += 1) {
        const runtime = time % 4 === 3 ? await opened.reopen() : opened.runtime;
        const piece = await runtime.readOutput(server, 'std_out', { from, ...PIECE });
        expect(piece.skipped_bytes).toBe(0);
        expect(piece.bytes.length).toBeLessThanOrEqual(PIECE.bytes_max);
        // The end of a piece is in the middle of a line, which waits for the rest.
        const used = piece.has_more ? Math.min(piece.bytes.length, PIECE.bytes_max - 3) : piece.bytes.length;
        text += Buffer.from(piece.bytes.subarray(0, used)).toString();
        from = piece.resumeAfter(used);
      }
      expect(text).toBe(expected);
      const rest = await opened.runtime.readOutput(server, 'std_out', { from, ...PIECE });
      expect([rest.bytes.length, rest.has_more, rest.resumeAfter(0)]).toEqual([0, false, String(from)]);
      await opened.kill(server);
      const last = await opened.runtime.readOutput(server, 'std_out', { from: undefined, ...PIECE });
      expect(last.bytes.length).toBe(PIECE.bytes_max);
    });

    test('that floods its output gets a line with the skipped amount, and is read on afterwards', async () => {
      const server = await opened.run('yes | head -c 300000; exec sleep 600');
      await waitFor(async () => (await opened.output(server)).length === 300_000, 'its output');
      const query = { bytes_max: 1_000, backlog_bytes_max: 100_000 };
      const piece = await opened.runtime.readOutput(server, 'std_out', { from: undefined, ...query });
      expect([piece.skipped_bytes, piece.bytes.length, piece.has_more]).toEqual([299_000, 1_000, false]);
      const after = await opened.runtime.readOutput(server, 'std_out', { from: piece.resumeAfter(1_000), ...query });
      expect([after.skipped_bytes, after.bytes.length]).toEqual([0, 0]);
      await opened.stop(server);
      await opened.waitForEnd(server);
    });

    test("with a script is run by the service's executable, which installs nothing and reads no file of the service", async () => {
      if (!opened.runtime.kinds.includes('javascript')) return;
      const script =
        'console.log(process.env.LEAK ?? "clean", Bun.argv.slice(2)); const n: number = 3; process.exit(n);';
      const order = await opened.orderOf('', { arguments: ['a', 'b'] });
      const { directory } = order.build;
      await Bun.write(join(directory, 'main.ts'), script);
      await Bun.write(join(directory, '.env'), 'LEAK=dirty');
      const build = { ...order.build, kind: 'javascript' as const, command: ['main.ts'] };
      const server = await opened.run('', { ...order, build });
      expect(await opened.waitForEnd(server)).toEqual({ is: 'ended', exit_code: 3, exit_signal: null });
      expect(await opened.output(server)).toBe('clean [ "a", "b" ]\n');
    });

    test('that is removed leaves nothing, whether it runs, has ended, or never existed', async () => {
      const running = await opened.run('echo x > $HOME/file; exec sleep 600');
      const ended = await opened.run('exit 0');
      await opened.waitForEnd(ended);
      const never = { server_id: crypto.randomUUID(), identity: undefined };
      for (const server of [running, ended, never, running]) {
        await opened.remove(server);
        expect(await opened.observe(unrecorded(server))).toEqual({ is: 'absent' });
        expect((await opened.runtime.list()).map(({ server_id }) => server_id)).not.toContain(server.server_id);
      }
    });

    test('that runs is found again after a restart of the service, recorded or not, and is not started twice', async () => {
      const order = await opened.orderOf('echo once; exec sleep 600');
      const server = await opened.start(order);
      await waitFor(async () => (await opened.output(server)) !== '', 'its output');
      const running = { is: 'running', identity: server.identity, host: kind.host ?? HOST } as const;
      const runtime = await opened.reopen();
      expect(await opened.observe(server, runtime)).toEqual(running);
      expect(await opened.observe(unrecorded(server), runtime)).toEqual(running);
      expect(await runtime.start(order)).toEqual(running);
      expect(await opened.output(server)).toBe('once\n');
      await opened.kill(server, runtime);
      expect((await opened.observe(server, runtime)).is).toBe('ended');
    });

    test('that ended while the service was stopped is seen to have ended, recorded or not', async () => {
      const server = await opened.run('exit 9');
      const end = await opened.waitForEnd(server);
      expect(end).toEqual({ is: 'ended', exit_code: 9, exit_signal: null });
      const runtime = await opened.reopen();
      expect(await opened.observe(server, runtime)).toEqual(end);
      expect(await opened.observe(unrecorded(server), runtime)).toEqual(end);
    });

    test('can be asked to end after a restart of the service', async () => {
      const server = await opened.run(`trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done`);
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      const runtime = await opened.reopen();
      await opened.stop(server, runtime);
      expect(await opened.waitForEnd(server, runtime)).toEqual({ is: 'ended', exit_code: 6, exit_signal: null });
    });

    test('that was lost with its machine has an unknown end', async () => {
      const server = await opened.run('echo ready; exec sleep 600');
      // A pod that has no connection yet is killed by deleting it.
      await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
      await opened.kill(server);
      const runtime = await opened.reopen();
      expect(await opened.observe(server, runtime)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
      await opened.remove(server, runtime);
      expect(await opened.observe(unrecorded(server), runtime)).toEqual({ is: 'absent' });
    });
  });
}
