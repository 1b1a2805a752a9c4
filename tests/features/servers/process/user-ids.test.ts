import { describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  findFreeUserId,
  listForeignUsers,
  NARROW,
  userRangeOf,
  WIDE,
} from '../../../../src/features/servers/runtimes/process/user-ids.ts';
import { IS_ROOT } from '../../../support/runtimes/runtimes.ts';
import { makeDataDirectory } from '../../../support/service.ts';

describe('users of servers', () => {
  const MAPS = [
    ['a machine', '         0          0 4294967295\n', WIDE],
    ['a container with its own 65,536 users', '         0     100000      65536\n', NARROW],
    [
      'a container with those in a second line',
      '         0       1000          1\n         1     100000      65536\n',
      NARROW,
    ],
    ['a container with all users in a second line', '0 1000 1\n1 1 4294967294\n', WIDE],
    ['a container whose line ends one user too early', `0 0 ${WIDE.first + WIDE.count - 1}\n`, NARROW],
    ['a container whose line ends with the last user of the range', `0 0 ${WIDE.first + WIDE.count}\n`, WIDE],
  ] as const;
  test.each(MAPS)('are in a range that fits %s', (_, uid_map, range) => {
    expect(userRangeOf(uid_map)).toEqual(range);
  });

  test('are never the user of PostgreSQL, and fit into the column', () => {
    expect(NARROW.first + NARROW.count - 1).toBe(65_533);
    expect(WIDE.first + WIDE.count - 1).toBe(2 ** 31 - 3);
  });

  test('are assigned once each, until none is left', () => {
    const range = { first: 61_000, count: 20 };
    const assigned = new Set<number>();
    for (let time = 0; time < range.count; time += 1) assigned.add(findFreeUserId(assigned, range) ?? 0);
    expect([...assigned].sort()).toEqual(Array.from({ length: range.count }, (_, index) => range.first + index));
    expect(findFreeUserId(assigned, range)).toBeUndefined();
  });

  test.skipIf(!IS_ROOT)('are not those of services of systemd, nor those of other processes', async () => {
    const directory = await makeDataDirectory();
    for (const name of ['61184', 'direct:61185', 'direct:name', '1000']) writeFileSync(join(directory, name), '');
    await using _ = Bun.spawn(['sleep', '600'], { uid: 61_186 });
    const others = listForeignUsers(directory);
    expect(others).toContain(61_184);
    expect(others).toContain(61_186);
    expect(others).not.toContain(61_185);
    expect(others).not.toContain(1_000);
    expect(listForeignUsers('/nowhere')).not.toContain(61_184);
    rmSync(directory, { recursive: true });
  });

  test('of the wide range are not the same twice by chance, as two services on one machine need', () => {
    const drawn = Array.from({ length: 100 }, () => findFreeUserId(new Set(), WIDE));
    expect(new Set(drawn).size).toBe(100);
  });
});
