import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findOwnProgram } from '../../../../src/features/servers/runtimes/process/muster-executable.ts';
import { isServerUser } from '../../../../src/features/servers/runtimes/process/user-ids.ts';
import { findFreePort } from '../../../support/network/test-ports.ts';
import { findProcessesOf } from '../../../support/processes.ts';
import {
  IS_ROOT,
  openTestRuntime,
  orderOf,
  PROCESS_RUNTIMES,
  pidOf,
  type TestRuntime,
} from '../../../support/runtimes/runtimes.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const [MQ_OPEN, SHMAT] = process.arch === 'arm64' ? [180, 196] : [240, 30];
const [IPPROTO_SMC, IPPROTO_MPTCP] = [256, 262];

describe.each(PROCESS_RUNTIMES)('the runtime "$name": a server', (kind) => {
  const has_own_user = kind === PROCESS_RUNTIMES[0] && IS_ROOT;
  let opened: TestRuntime;
  beforeAll(async () => {
    process.env.CANARY_SECRET = 'canary-1';
    opened = await openTestRuntime(kind);
  });
  afterAll(async () => {
    delete process.env.CANARY_SECRET;
    await opened[Symbol.asyncDispose]();
  });

  /** Returns the environment that a server printed, by name. */
  function parse(text: string): Record<string, string | undefined> {
    const entries = text.split('\n').filter((line) => line !== '');
    return Object.fromEntries(
      entries.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  }

  test('has the given environment and a folder of its own, and nothing of the service', async () => {
    const order = await orderOf(opened.directory, 'env', {
      environment: { SERVICE_TOKEN: 'a=b' },
    });
    const work = join(opened.directory, 'servers', order.server_id, 'work');
    const { PWD, ...environment } = parse(await opened.runOnce('', order));
    expect(environment).toEqual({
      SERVICE_TOKEN: 'a=b',
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: work,
      TMPDIR: work,
      MUSTER_SERVER_ID: order.server_id,
    });
    expect(PWD).toBe(order.build.directory);
  });

  test('has its own variables rather than those of the runtime, except the mark by which it is found', async () => {
    const environment = { PATH: '/usr/bin:/bin', HOME: '/', TMPDIR: '/', MUSTER_SERVER_ID: 'another' };
    const order = await orderOf(opened.directory, 'env', { environment });
    const { PWD, ...given } = parse(await opened.runOnce('', order));
    expect(given).toEqual({ ...environment, MUSTER_SERVER_ID: order.server_id });
  });

  test('has the same environment if it is a script, and what the executable needs to run it', async () => {
    const order = await orderOf(opened.directory, '', { environment: { SERVICE_TOKEN: 'ab' } });
    const { directory } = order.build;
    await Bun.write(
      join(directory, 'main.js'),
      'for (const [k, v] of Object.entries(process.env)) console.log(k + "=" + v)',
    );
    const build = { ...order.build, kind: 'javascript' as const, command: ['main.js'] };
    const { PWD, ...given } = parse(await opened.runOnce('', { ...order, build }));
    // What "bun run" sets for every script.
    const own = Object.keys(given).filter((name) => !/^(npm_\w+|NODE)$/.test(name));
    expect(own.sort()).toEqual(['BUN_BE_BUN', 'HOME', 'MUSTER_SERVER_ID', 'PATH', 'SERVICE_TOKEN', 'TMPDIR']);
    expect(Object.values(given).join()).not.toContain('canary');
  });

  test('has no open file of the service: no listening socket, and none of the database', async () => {
    using listening = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    using connected = await Bun.connect({ hostname: '127.0.0.1', port: listening.port, socket: { data() {} } });
    expect(connected.readyState).toBe(1);
    const server = await opened.run('exec sleep 600');
    const { server_id } = server;
    const folder = join(opened.directory, 'servers', server_id);
    const pids = await waitFor(() => {
      const found = findProcessesOf(server_id);
      const names = found.map((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
      return names.sort().join() === 'sh,sleep' && found;
    }, 'the server and its shim');
    const open = pids.map((pid) =>
      readdirSync(`/proc/${pid}/fd`).map((file) => readlinkSync(`/proc/${pid}/fd/${file}`)),
    );
    const streams = ['/dev/null', join(folder, 'std_out'), join(folder, 'std_err')];
    const [shell = [], own = []] = open.sort((one, other) => other.length - one.length);
    expect(own).toEqual(streams);
    // The shim has its stderr under another number.
    expect(shell.toSorted()).toEqual([...streams, join(folder, 'exit')].toSorted());
    await opened.kill(server);
  });

  test('leaves nothing on the disk once it is removed', async () => {
    const server = await opened.run('mkdir deep $HOME/deep; echo x > $HOME/deep/file; exec sleep 600');
    const folder = join(opened.directory, 'servers', server.server_id);
    await waitFor(() => existsSync(join(folder, 'work/deep/file')), 'its files');
    await opened.remove(server);
    expect(existsSync(folder)).toBe(false);
  });

  test('cannot make shared memory, semaphores and queues of the kernel, which would outlive it', async () => {
    const script = `
      my %made = (memory => shmget(0, 4096, 0600), semaphores => semget(0, 1, 0600), messages => msgget(0, 0600));
      for my $kind (sort keys %made) { print "$kind\\n" if defined $made{$kind}; }
      shmctl($made{memory}, 0, 0); semctl($made{semaphores}, 0, 0, 0); msgctl($made{messages}, 0, 0);
      my ($queue, $create, $rights) = ("muster-queue-$$\\0", 0101, 0600);
      print "queue\\n" if syscall(${MQ_OPEN}, $queue, $create, $rights, 0) >= 0;
      syscall(${MQ_OPEN} + 1, $queue);
      print "tried\\n"`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe('tried\n');
  });

  test('cannot use or remove shared memory of the kernel that belongs to other programs', async () => {
    const RMID = 0;
    const made = Bun.spawnSync(['perl', '-e', 'print shmget(0, 4096, 0666)']).stdout.toString();
    const remove = `print shmctl(${made}, ${RMID}, 0) ? "removed" : "kept"`;
    const script = `print syscall(${SHMAT}, ${made}, 0, 0) == -1 ? "" : "attached "; ${remove}`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe('kept');
    expect(Bun.spawnSync(['perl', '-e', remove]).stdout.toString()).toBe('removed');
  });

  test('may listen by TCP on a port range, unless the range is for UDP', async () => {
    const rangeOf = (protocol: 'tcp' | 'udp', port: number) =>
      ({ protocol, routing: 'host', port_range: { min: port, max: port } }) as const;
    const [tcp, udp] = [findFreePort(), findFreePort()];
    const script = 'for (@ARGV) { print IO::Socket::INET->new(Listen => 1, LocalPort => $_) ? "yes " : "no " }';
    const order = { ports: { a: rangeOf('tcp', tcp), b: rangeOf('udp', udp) } };
    expect(await opened.runOnce(`perl -MIO::Socket::INET -e '${script}' ${tcp} ${udp}`, order)).toBe('yes no ');
  });

  test('cannot make sockets of multipath TCP and SMC, whose ports are not limited: they count as not supported', async () => {
    const script = `
      use Socket;
      my $unsupported = 93;
      for my $protocol (0, ${IPPROTO_SMC}, ${IPPROTO_MPTCP}) {
        for my $family (AF_INET, AF_INET6) {
          print socket(my $socket, $family, SOCK_STREAM, $protocol) ? "made " : $! + 0 == $unsupported ? "unsupported " : "$! ";
        }
      }`;
    const unsupported = 'unsupported '.repeat(4);
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe(`made made ${unsupported}`);
  });

  test('cannot hold a lease on its output, which would make the service wait, and can lock it', async () => {
    const script = `
      my %commands = (lease => 1024, lock => 6, descriptor => 1030);
      for my $name (sort keys %commands) {
        my $argument = $name eq "lock" ? pack("s s l! l! l", 1, 0, 0, 0, 0) : 1;
        print STDERR "$name\n" if defined fcntl(STDOUT, $commands{$name}, $argument);
      }`;
    expect(await opened.runOnce(`perl -e '${script}'`)).toBe('descriptor\nlock\n');
  });

  test("has a session of its own without a terminal, so keys in the service's terminal do not reach it", async () => {
    const server = await opened.run('exec sleep 600');
    const pid = pidOf(server);
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const [, , group, session, terminal] = fields;
    expect([group, session, terminal]).toEqual([String(pid), String(pid), '0']);
    await opened.kill(server);
  });

  describe.skipIf(!has_own_user)('a server with a user of its own', () => {
    test('has no groups and no capabilities', async () => {
      const status = await opened.runOnce(`grep -E '^(Uid|Gid|Groups|CapEff|CapPrm):' /proc/self/status`);
      const user_id = Number(/^Uid:\t(\d+)/.exec(status)?.[1]);
      expect(isServerUser(user_id)).toBe(true);
      const ids = Array(4).fill(user_id).join('\t');
      expect(status.replaceAll(/ +$/gm, '')).toBe(
        `Uid:\t${ids}\nGid:\t${ids}\nGroups:\t\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n`,
      );
    });

    test('can write to its own folder, and nowhere in those of the service', async () => {
      const other = await opened.run('echo private > $HOME/file; exec sleep 600');
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
        `kill -0 ${pidOf(other)}`,
        `kill -0 ${process.pid}`,
        `cat /proc/${process.pid}/environ`,
        `cat /proc/${pidOf(other)}/environ`,
        `ls /proc/${process.pid}/fd/`,
        `ls ${opened.directory}/programs`,
      ];
      const script = FORBIDDEN.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo '${attempt}'`).join('\n');
      const ALLOWED = 'echo x > $HOME/x && mkdir $TMPDIR/y && cat run.sh >/dev/null && echo allowed';
      expect(await opened.runOnce(`${script}\n${ALLOWED}\n`)).toBe('allowed\n');
      await opened.kill(other);
    });
  });
});

test.skipIf(!IS_ROOT)('earlier executables are removed, except those that a server still runs', async () => {
  const directory = join(await makeDataDirectory(), 'programs');
  await mkdir(directory);
  const running = join(directory, 'bun-1-2-3-4');
  await copyFile(Bun.which('sleep') ?? '', running);
  await using _ = Bun.spawn([running, '600']);
  for (const name of ['bun-5-6-7-8', 'bun-5-6-7-9.unfinished', 'launch-1.js'])
    await writeFile(join(directory, name), '');
  const own = await findOwnProgram(directory, { is_separate: true });
  expect(await findOwnProgram(directory, { is_separate: true })).toBe(own);
  const left = (await readdir(directory)).map((name) => join(directory, name)).sort();
  expect(left).toEqual([running, own, join(directory, 'launch-1.js')].sort());
  await rm(dirname(directory), { recursive: true });
});
