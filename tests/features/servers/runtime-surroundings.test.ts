import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartOrder } from '../../../src/features/servers/runtimes/runtime.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { IS_ROOT, nextUser, openTestRuntime, orderOf, RUNTIMES, type TestRuntime } from '../../support/runtimes.ts';
import { waitFor } from '../../support/wait.ts';

describe.each(RUNTIMES)('around a server by the runtime $name', (kind) => {
  let opened: TestRuntime;
  beforeAll(async () => {
    process.env.CANARY_SECRET = 'canary-1';
    opened = await openTestRuntime(kind);
  });
  afterAll(async () => {
    delete process.env.CANARY_SECRET;
    await opened[Symbol.asyncDispose]();
  });

  /** What a script wrote until it ended. */
  async function tell(script: string, order: Partial<StartOrder> = {}): Promise<string> {
    const server = await opened.run(script, order);
    await opened.endOf(server);
    return (await opened.output(server)) + (await opened.output(server, 'std_err'));
  }

  /** The environment of a server that printed it, by name. */
  function parse(text: string): Record<string, string | undefined> {
    const entries = text.split('\n').filter((line) => line !== '');
    return Object.fromEntries(
      entries.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  }

  test('there is the environment it was given, a place of its own, and nothing of ours', async () => {
    const order = await orderOf(opened.directory, 'env', {
      user_id: nextUser(),
      environment: { SERVICE_TOKEN: 'a=b' },
    });
    const work = join(opened.directory, 'servers', order.server_id, 'work');
    const { PWD, ...environment } = parse(await tell('', order));
    expect(environment).toEqual({
      SERVICE_TOKEN: 'a=b',
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: work,
      TMPDIR: work,
      MUSTER_SERVER_ID: order.server_id,
    });
    expect(PWD).toBe(order.build.directory);
  });

  test('its own variables count more, but not the one by which it is found', async () => {
    const environment = { PATH: '/usr/bin:/bin', HOME: '/', TMPDIR: '/', MUSTER_SERVER_ID: 'another' };
    const order = await orderOf(opened.directory, 'env', { environment });
    const { PWD, ...given } = parse(await tell('', order));
    expect(given).toEqual({ ...environment, MUSTER_SERVER_ID: order.server_id });
  });

  test('a script has the same, and what makes our executable run it', async () => {
    const order = await orderOf(opened.directory, '', { environment: { SERVICE_TOKEN: 'ab' } });
    const { directory } = order.build;
    await Bun.write(
      join(directory, 'main.js'),
      'for (const [k, v] of Object.entries(process.env)) console.log(k + "=" + v)',
    );
    const build = { ...order.build, kind: 'javascript', command: ['main.js'] } as const;
    const { PWD, ...given } = parse(await tell('', { ...order, build: { ...build, command: ['main.js'] } }));
    // What "bun run" tells every script of itself.
    const own = Object.keys(given).filter((name) => !/^(npm_\w+|NODE)$/.test(name));
    expect(own.sort()).toEqual(['BUN_BE_BUN', 'HOME', 'MUSTER_SERVER_ID', 'PATH', 'SERVICE_TOKEN', 'TMPDIR']);
    expect(Object.values(given).join()).not.toContain('canary');
  });

  test('no file of ours is open: neither a socket we listen on nor one to the database', async () => {
    using listening = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    using connected = await Bun.connect({ hostname: '127.0.0.1', port: listening.port, socket: { data() {} } });
    expect(connected.readyState).toBe(1);
    const server = await opened.run('exec sleep 600', { user_id: nextUser() });
    const { server_id } = server;
    const folder = join(opened.directory, 'servers', server_id);
    const pids = await waitFor(() => {
      const found = findProcessesOf(server_id);
      const names = found.map((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
      return names.sort().join() === 'sh,sleep' && found;
    }, 'the server and the shell in front of it');
    const open = pids.map((pid) =>
      readdirSync(`/proc/${pid}/fd`).map((file) => readlinkSync(`/proc/${pid}/fd/${file}`)),
    );
    const streams = ['/dev/null', join(folder, 'std_out'), join(folder, 'std_err')];
    const [shell = [], own = []] = open.sort((one, other) => other.length - one.length);
    expect(own).toEqual(streams);
    expect(shell).toEqual([...streams, join(folder, 'exit')]);
    await opened.kill(server);
  });

  test('a session of its own, without a terminal: what is typed at ours is not for it', async () => {
    const server = await opened.run('exec sleep 600');
    const pid = server.process?.pid ?? 0;
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const [, , group, session, terminal] = fields;
    expect([group, session, terminal]).toEqual([String(pid), String(pid), '0']);
    await opened.kill(server);
  });

  describe.skipIf(!IS_ROOT)('where we are root', () => {
    test('it is another user, without groups and rights', async () => {
      const user_id = nextUser();
      const status = await tell(`grep -E '^(Uid|Gid|Groups|CapEff|CapPrm):' /proc/self/status`, { user_id });
      const ids = Array(4).fill(user_id).join('\t');
      expect(status.replaceAll(/ +$/gm, '')).toBe(
        `Uid:\t${ids}\nGid:\t${ids}\nGroups:\t\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n`.replace(
          '\t\n',
          '\t\n',
        ),
      );
    });

    test('it can write to its own place, and nowhere of ours', async () => {
      const other = await opened.run('echo private > $HOME/file; exec sleep 600', { user_id: nextUser() });
      const theirs = join(opened.directory, 'servers', other.server_id);
      await waitFor(() => Bun.file(join(theirs, 'work/file')).exists(), 'a file of another server');
      await writeFile(join(opened.directory, 'administrator-token'), 'canary-2', { mode: 0o600 });
      const FORBIDDEN = [
        `ls ${opened.directory}`,
        `ls ${opened.directory}/servers`,
        `cat ${opened.directory}/administrator-token`,
        `touch ${opened.directory}/new`,
        `touch ${opened.directory}/servers/new`,
        'touch new',
        'echo changed >> run.sh',
        'touch $HOME/../new',
        'cat $HOME/../exit',
        'cat $HOME/../std_out',
        `ls ${theirs}`,
        `ls ${theirs}/work`,
        `cat ${theirs}/work/file`,
        `cat ${theirs}/std_out`,
        `kill -0 ${other.process?.pid}`,
        `kill -0 ${process.pid}`,
        `cat /proc/${process.pid}/environ`,
        `cat /proc/${other.process?.pid}/environ`,
        `ls /proc/${process.pid}/fd/`,
        `ls ${opened.directory}/programs`,
      ];
      const script = FORBIDDEN.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo '${attempt}'`).join('\n');
      const ALLOWED = 'echo x > $HOME/x && mkdir $TMPDIR/y && cat run.sh >/dev/null && echo allowed';
      expect(await tell(`${script}\n${ALLOWED}\n`, { user_id: nextUser() })).toBe('allowed\n');
      await opened.kill(other);
    });
  });
});
