import { expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { makePod } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { makeDataDirectory } from '../../../support/service.ts';

const MIB = 1_024 ** 2;
const BLOCK = 4_096;

/** Returns the limit on the disk of a pod whose build takes this much. */
function diskLimitOf(disk_max: { bytes: number; files: number } | undefined, build_bytes: number): unknown {
  const build = { url: 'http://muster', token: '', sha256: '' };
  const pod = makePod(
    {
      order: {
        server_id: crypto.randomUUID(),
        arguments: [],
        environment: {},
        ports: {},
        build: { kind: 'archive', sha256: undefined, directory: '/build', command: ['run'] },
        resources: { cpu: 100, memory: 64 },
      },
      build,
      build_bytes,
      server: { url: 'ws://muster', token: '', command: [], is_script: false, environment: {}, memory: 64 },
    },
    { machine_id: crypto.randomUUID(), image: 'muster:1', disk_max },
  ) as { spec: { containers: { resources: { limits: Record<string, string> } }[] } };
  return pod.spec.containers[0]?.resources.limits['ephemeral-storage'];
}

test('kubernetes: a pod may have its build and its unread output on the disk beside what its server may have', () => {
  const limit = 100 * MIB + 300 * MIB + 1_024 * MIB;
  expect(diskLimitOf({ bytes: 100 * MIB, files: 1_000 }, 300 * MIB)).toBe(String(limit));
  expect(diskLimitOf(undefined, 300 * MIB)).toBeUndefined();
});

test('kubernetes: the size of a build is what its files take in blocks of the disk, and folders', async () => {
  const directory = await makeDataDirectory();
  await mkdir(join(directory, 'maps'));
  await Bun.write(join(directory, 'run.sh'), 'exit 0');
  await Bun.write(join(directory, 'maps/large'), 'x'.repeat(3 * BLOCK + 1));
  await Bun.write(join(directory, 'maps/empty'), '');
  const { bytes } = await createPackedBuilds().facts(directory);
  expect(bytes).toBe((1 + 4 + 2) * BLOCK);
});
