import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { identifyProcess } from '../../../src/platform/processes.ts';
import { nextUser, openTestRuntime, orderOf, RUNTIMES, type TestRuntime } from '../../support/runtimes.ts';
import { waitFor } from '../../support/wait.ts';

describe.each(RUNTIMES)('after a restart of ours, the runtime $name', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const USERS = [
    { of: 'of a user of its own', user: nextUser },
    { of: 'of our own user', user: () => undefined },
  ];
  for (const { of, user } of USERS) {
    test(`finds a running server ${of} again, noted or not, and does not start it twice`, async () => {
      const server = await opened.run('echo once; exec sleep 600', { user_id: user() });
      const { process } = server;
      await waitFor(async () => (await opened.output(server)) !== '', 'its words');
      const runtime = await opened.again();
      expect(await opened.observe(server, runtime)).toEqual({ is: 'running', process: identified(process) });
      expect(await opened.observe({ ...server, process: undefined }, runtime)).toEqual({
        is: 'running',
        process: identified(process),
      });
      const again = await orderOf(opened.directory, 'echo twice', server);
      expect(await runtime.start(again)).toEqual(identified(process));
      expect(await opened.output(server)).toBe('once\n');
      await opened.kill(server, runtime);
      expect((await opened.observe(server, runtime)).is).toBe('ended');
    });

    test(`knows how a server ${of} ended meanwhile, noted or not`, async () => {
      const server = await opened.run('exit 9', { user_id: user() });
      const end = await opened.endOf(server);
      expect(end).toEqual({ is: 'ended', exit_code: 9, exit_signal: null });
      const runtime = await opened.again();
      expect(await opened.observe(server, runtime)).toEqual(end);
      expect(await opened.observe({ ...server, process: undefined }, runtime)).toEqual(end);
    });
  }

  test('can still ask a server to end, and sees how it does', async () => {
    const server = await opened.run(`trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done`);
    await waitFor(async () => (await opened.output(server)) === 'ready\n', 'it to be ready');
    const runtime = await opened.again();
    runtime.stop(server);
    expect(await opened.endOf(server)).toEqual({ is: 'ended', exit_code: 6, exit_signal: null });
  });

  const IMPOSTORS = [
    ['of the same number that started at another time', { start_ticks: 1 }],
    ['of another life of the machine', { boot_id: '00000000-0000-4000-8000-000000000000' }],
  ] as const;
  test.each(IMPOSTORS)('takes no process %s for the server, and leaves it alone', async (_, difference) => {
    await using stranger = Bun.spawn(['sleep', '600'], { detached: true });
    const server = await opened.run('exit 2');
    await opened.endOf(server);
    const process = { ...identified(identifyProcess(stranger.pid)), ...difference };
    const noted = { ...server, process };
    const runtime = await opened.again();
    expect(await opened.observe(noted, runtime)).toEqual({ is: 'ended', exit_code: 2, exit_signal: null });
    runtime.stop(noted);
    await opened.kill(noted, runtime);
    await opened.remove(noted, runtime);
    expect(identifyProcess(stranger.pid)).toBeDefined();
  });

  test('reports an unknown end for a server that was lost with its machine', async () => {
    const server = await opened.run('exec sleep 600');
    await opened.kill(server);
    const runtime = await opened.again();
    expect(await opened.observe(server, runtime)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
    await opened.remove(server, runtime);
    expect(await opened.observe({ ...server, process: undefined }, runtime)).toEqual({ is: 'absent' });
  });
});

function identified<Identity>(identity: Identity | undefined): Identity {
  if (identity === undefined) throw new Error('it does not run');
  return identity;
}
