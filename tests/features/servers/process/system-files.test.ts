import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { $ } from 'bun';
import { systemFilesExcept } from '../../../../src/features/servers/runtimes/process/system-files.ts';
import { IS_ROOT, openTestRuntime, orderOf, processes } from '../../../support/runtimes/runtimes.ts';

const OTHER_USER_ID = 64_321;

let folder: string;
const at = (...names: string[]) => join(folder, ...names);
const listExcept = (...hidden: string[]) => systemFilesExcept(at(...hidden), [folder]).sort();

beforeAll(async () => {
  folder = await mkdtemp('/tmp/muster-system-files-');
  await chmod(folder, 0o755);
  await mkdir(at('muster-2', 'data'), { recursive: true });
  await mkdir(at('muster-2', 'bin'));
  await mkdir(at('other', '..data'), { recursive: true });
  await symlink(at('muster-2'), at('muster'));
  await symlink(at('muster-2', 'data', 'administrator-token'), at('token'));
  await writeFile(at('file'), '');
});
afterAll(() => rm(folder, { recursive: true }));

test('files of the system: a directory outside of the data directory is readable as a whole', () => {
  expect(systemFilesExcept('/nowhere/data', [folder, at('missing')])).toEqual([folder]);
});

test('files of the system: a link beside the data directory, which leads into it, is left out', () => {
  expect(listExcept('muster-2', 'data')).toEqual([at('file'), at('muster-2', 'bin'), at('other')].sort());
});

test('files of the system: a data directory whose name begins with two dots is left out', () => {
  expect(listExcept('other', '..data')).toEqual([at('file'), at('muster-2')].sort());
});

test.skipIf(!IS_ROOT)(
  'files of the system: a parent of the data directory that may not be listed has none',
  async () => {
    await chmod(at('muster-2'), 0o711);
    process.seteuid?.(OTHER_USER_ID);
    try {
      expect(listExcept('muster-2', 'data')).toEqual([at('file'), at('other')].sort());
    } finally {
      process.seteuid?.(0);
    }
  },
);

test.skipIf(!IS_ROOT)('files of the system: a server reads those that exist when it starts', async () => {
  // In a directory that servers may read, except the data directory in it.
  const parent = await mkdtemp('/opt/muster-test-');
  try {
    await mkdir(join(parent, 'data'));
    await chmod(parent, 0o755);
    await using opened = await openTestRuntime({
      name: 'process',
      open: processes(true, { data_directory: join(parent, 'data') }),
    });
    await writeFile(join(parent, 'later'), 'new');
    expect(await opened.runOnce(`cat ${parent}/later`)).toBe('new');
  } finally {
    await rm(parent, { recursive: true });
  }
});

const JAVA_PROGRAM = `
class Random {
  public static void main(String[] args) {
    System.out.println("random " + new java.security.SecureRandom().nextInt(1));
  }
}
`;

test.skipIf(Bun.which('javac') === null)(
  'files of the system: Java finds its settings, which random numbers need',
  async () => {
    await using opened = await openTestRuntime({ name: 'process', open: processes(IS_ROOT) });
    const order = await orderOf(opened.directory, 'exec java -Xshare:off Random');
    await writeFile(at('Random.java'), JAVA_PROGRAM);
    await $`javac -d ${order.build.directory} ${at('Random.java')}`.quiet();
    expect(await opened.runOnce('', order)).toBe('random 0\n');
  },
);

const HAS_MONO = Bun.which('mono') !== null && Bun.which('mcs') !== null;
const LISTENER = `
using System.Net;
using System.Net.Sockets;
static class Program {
  static void Main() {
    var listener = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0));
    System.Console.WriteLine("listens " + (((IPEndPoint)listener.Client.LocalEndPoint).Port > 0));
  }
}
`;

test.skipIf(!HAS_MONO)('files of the system: Mono finds its settings, which sockets need', async () => {
  await using opened = await openTestRuntime({ name: 'process', open: processes(IS_ROOT) });
  const order = await orderOf(opened.directory, 'exec mono listener.exe');
  await writeFile(at('listener.cs'), LISTENER);
  await $`mcs -out:${join(order.build.directory, 'listener.exe')} ${at('listener.cs')}`.quiet();
  expect(await opened.runOnce('', order)).toBe('listens True\n');
});
