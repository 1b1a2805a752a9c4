import { describe, expect, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAddressClasses, readAddressClasses } from '../../src/platform/address-classes.ts';
import { StartError } from '../../src/platform/errors.ts';
import { makeDataDirectory } from '../support/service.ts';

describe('address classes: a list with a wrong line stops the start', () => {
  test.each([
    ['no class', '1.2.3.4', 'has no class (vpn, proxy, tor, hosting) after the network'],
    ['an unknown class', '1.2.3.4 evil', 'has no class'],
    ['two classes', '1.2.3.4 vpn tor', 'has no class'],
    ['no network', 'example.com vpn', 'does not begin with an address'],
    ['an address with three numbers', '1.2.3 vpn', 'does not begin with an address'],
    ['an octal number', '010.1.2.3 vpn', 'does not begin with an address'],
    ['a prefix length that is too long', '1.2.3.4/33 vpn', 'has no length from 0 to 32 after the slash'],
    ['a prefix length that is too long for IPv6', '2001:db8::/129 vpn', 'has no length from 0 to 128 after the slash'],
    ['no prefix length after the slash', '1.2.3.4/ vpn', 'has no length'],
    ['a negative prefix length', '1.2.3.4/-1 vpn', 'has no length'],
    ['two prefix lengths', '1.2.3.4/8/8 vpn', 'has no length'],
    ['a zone', 'fe80::1%eth0 vpn', 'does not begin with an address'],
    ['IPv4 inside IPv6', '::ffff:1.2.3.4 vpn', 'has an IPv4 address inside IPv6: write it as IPv4'],
  ])('%s', (_what, line, problem) => {
    const read = () => parseAddressClasses(`# a list\n\n192.0.2.0/24 vpn\n${line}\n`);
    expect(read).toThrow(StartError);
    expect(read).toThrow('MUSTER_ADDRESS_CLASSES: line 4, ');
    expect(read).toThrow(problem);
  });

  test('a list file that does not exist', async () => {
    const path = join(await makeDataDirectory(), 'none.txt');
    await expect(readAddressClasses(path)).rejects.toThrow(`names the file ${path}, which cannot be read`);
  });
});

describe('address classes: an address has the classes of every network that contains it', () => {
  const list = parseAddressClasses(
    [
      '# ours',
      '10.1.2.3/8 vpn # the bits after the length do not count',
      '\t10.0.0.0/16   tor\r',
      '198.51.100.7 proxy',
      '2001:db8::/32 hosting',
      '2001:db8:0:1::/64 vpn',
    ].join('\n'),
  );

  test.each([
    ['10.0.255.255', ['vpn', 'tor']],
    ['10.255.255.255', ['vpn']],
    ['::ffff:10.0.0.1', ['vpn', 'tor']],
    ['11.0.0.0', []],
    ['9.255.255.255', []],
    ['198.51.100.7', ['proxy']],
    ['198.51.100.6', []],
    ['2001:db8:ffff::1', ['hosting']],
    ['2001:DB8:0:1::1', ['vpn', 'hosting']],
    ['2001:db9::1', []],
    ['', []],
    ['unknown', []],
  ])('%s', (address, classes) => {
    expect(list.classesOf(address) as string[]).toEqual(classes);
  });

  test('/0 contains every address of its family and none of the other', () => {
    const all = parseAddressClasses('0.0.0.0/0 tor\n::/0 vpn');
    expect([all.classesOf('255.255.255.255'), all.classesOf('ffff::1')]).toEqual([['tor'], ['vpn']]);
  });

  test('without a list, an address has no class', async () => {
    expect((await readAddressClasses(undefined)).classesOf('10.0.0.1')).toEqual([]);
  });

  test('the list is read from a file', async () => {
    const path = join(await makeDataDirectory(), 'list.txt');
    await writeFile(path, '10.0.0.0/8 hosting\n');
    expect((await readAddressClasses(path)).classesOf('10.0.0.1')).toEqual(['hosting']);
  });
});
