import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { closeSync, openSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { readIdentity } from '../../../../src/features/servers/runtimes/process/identity.ts';
import { identifyProcess } from '../../../../src/platform/system/processes.ts';
import { openTestRuntime, PROCESS_RUNTIMES, type TestRuntime } from '../../../support/runtimes/runtimes.ts';
import { waitFor } from '../../../support/wait.ts';

describe.each(PROCESS_RUNTIMES)('the runtime "$name" after a restart of the service', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    opened = await openTestRuntime(kind);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const IMPOSTORS = [
    ['with the same pid and another start time', { start_ticks: 1 }],
    ['of another boot', { boot_id: '00000000-0000-4000-8000-000000000000' }],
  ] as const;
  test.each(IMPOSTORS)('leaves a process %s alone', async (_, difference) => {
    await using stranger = Bun.spawn(['sleep', '600'], { detached: true });
    const server = await opened.run('exit 2');
    await opened.waitForEnd(server);
    const recorded = { ...server, identity: { ...identifyProcess(stranger.pid), ...difference } };
    const runtime = await opened.reopen();
    expect(await opened.observe(recorded, runtime)).toEqual({ is: 'ended', exit_code: 2, exit_signal: null });
    await opened.stop(recorded, runtime);
    await opened.kill(recorded, runtime);
    await opened.remove(recorded, runtime);
    expect(identifyProcess(stranger.pid)).toBeDefined();
  });

  test('finds a server by the identity that earlier releases recorded', async () => {
    const server = await opened.run('exec sleep 600');
    const { pid = 0, start_ticks = 0, boot_id = '' } = readIdentity(server.identity) ?? {};
    const recorded = { ...server, identity: { pid, start_ticks, boot_id } };
    expect((await opened.observe(recorded, await opened.reopen())).is).toBe('running');
    await opened.kill(recorded);
  });

  test('ignores an identity of another runtime, and finds the server by its files', async () => {
    const server = await opened.run('exec sleep 600');
    const foreign = { ...server, identity: { container: 'c0ffee' } };
    expect(await opened.observe(foreign)).toMatchObject({ is: 'running', identity: server.identity });
    await opened.kill(foreign);
    expect((await opened.observe(server)).is).toBe('ended');
  });

  // For a moment, while the kernel starts its program, this holds for each server.
  test('finds a server whose environment does not name it', async () => {
    const server = await opened.run('exit 2');
    await opened.waitForEnd(server);
    const exit = openSync(join(opened.directory, 'servers', server.server_id, 'exit'), 'w');
    await using nameless = Bun.spawn(['sleep', '600'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', exit] });
    closeSync(exit);
    const unrecorded = { ...server, identity: undefined };
    const seen = await opened.observe(unrecorded);
    expect(seen).toMatchObject({ is: 'running', identity: { pid: nameless.pid } });
    nameless.kill();
    await nameless.exited;
    expect((await opened.observe(unrecorded)).is).toBe('ended');
  });

  test('does not take a server for another one whose exit file it imitates', async () => {
    const lost = await opened.run('exit 2');
    await opened.waitForEnd(lost);
    truncateSync(join(opened.directory, 'servers', lost.server_id, 'exit'));
    const folder = `"$HOME"/${lost.server_id}`;
    const imitate = `mkdir ${folder}; exec setsid sh -c 'exec 9>${folder}/exit; echo ready; exec sleep 600'`;
    const impostor = await opened.run(imitate);
    await waitFor(async () => (await opened.output(impostor)) === 'ready\n', 'the file to be open');
    const unrecorded = { ...lost, identity: undefined };
    expect(await opened.observe(unrecorded)).toEqual({ is: 'ended', exit_code: null, exit_signal: null });
    await opened.kill(impostor);
  });
});
