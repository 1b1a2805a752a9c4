import { describe, expect, test } from 'bun:test';
import { packTar, paxRecord, rawEntry, TAR_END, type TarEntry } from '../../support/tar.ts';
import { PACKINGS, UNTOUCHED, unpack } from '../../support/unpacking.ts';

interface Hostile {
  what: string;
  tar: Buffer;
  /** The refusal without its beginning "The build is invalid: ". */
  refusal: string;
}

/** Each archive begins with this entry, so that none is refused for being empty. */
const HONEST: TarEntry = { name: 'server', content: '#!/bin/sh\n', mode: 0o755 };

const pack = (...entries: TarEntry[]) => packTar([HONEST, ...entries]);
const join = (...entries: Buffer[]) => Buffer.concat([rawEntry({ name: 'server' }), ...entries, TAR_END]);
const pax = (key: string, value: string) => rawEntry({ name: 'any', type: 'x', content: paxRecord(key, value) });
const longName = (name: string) => rawEntry({ name: '././@LongLink', type: 'L', content: `${name}\0` });
const notPlain = (name: string) => `${JSON.stringify(name)} is not a plain path inside the archive.`;
const isLink = (to: string, option = '--dereference') =>
  `"link" is a link to ${JSON.stringify(to)}; pack the file itself (tar ${option}).`;

const OUTSIDE_NAMES = ['../outside', '../../note', 'a/../../b', 'a/..', '..', '/etc/passwd', '//etc/passwd'];
const ODD_NAMES = [
  'a//b',
  'a/./b',
  '..\\outside',
  'a\\b',
  'C:\\windows',
  'line\nbreak',
  'tab\there',
  'bell\x07',
  '\x7f',
];
const NAMES = await Promise.all(
  [...OUTSIDE_NAMES, ...ODD_NAMES].flatMap((name) => [
    pack({ name, content: 'x' }).then((tar) => ({
      what: `a file named ${JSON.stringify(name)}`,
      tar,
      refusal: notPlain(name),
    })),
    pack({ name: `${name}/`, type: 'directory' }).then((tar) => ({
      what: `a folder named ${JSON.stringify(name)}`,
      tar,
      refusal: notPlain(`${name}/`),
    })),
  ]),
);

const LINKS: Hostile[] = ['../../note', '/', 'server', 'link', ''].flatMap((linkname) => [
  {
    what: `a symbolic link to "${linkname}"`,
    tar: join(rawEntry({ name: 'link', type: '2', linkname })),
    refusal: isLink(linkname),
  },
  {
    what: `a hard link to "${linkname}"`,
    tar: join(rawEntry({ name: 'link', type: '1', linkname })),
    refusal: isLink(linkname, '--hard-dereference'),
  },
]);
LINKS.push({
  what: 'a link, and a file written through it',
  tar: join(rawEntry({ name: 'link', type: '2', linkname: '../..' }), rawEntry({ name: 'link/note', content: 'x' })),
  refusal: isLink('../..'),
});

const THINGS: Hostile[] = Object.entries({
  'a character device': '3',
  'a block device': '4',
  'a fifo': '6',
  'an old sparse file': 'S',
  'a volume label': 'V',
  'the continuation of another volume': 'M',
  'an unknown type': '~',
}).map(([what, type]) => ({
  what,
  tar: join(rawEntry({ name: 'thing', type })),
  refusal: '"thing" is neither a file nor a folder.',
}));

const PLACES: Hostile[] = [
  {
    what: 'the same file twice',
    tar: await pack({ name: 'a', content: 'one' }, { name: 'a', content: 'two' }),
    refusal: '"a" occurs twice.',
  },
  {
    what: 'the same file twice in two spellings',
    tar: await pack({ name: 'a', content: 'one' }, { name: './a', content: 'two' }),
    refusal: '"./a" occurs twice.',
  },
  {
    what: 'a file in the place of a folder',
    tar: await pack({ name: 'a/', type: 'directory' }, { name: 'a', content: 'two' }),
    refusal: '"a" occurs twice.',
  },
  {
    what: 'a folder in the place of a file',
    tar: await pack({ name: 'a', content: 'one' }, { name: 'a/', type: 'directory' }),
    refusal: '"a/" needs a folder where the archive has a file.',
  },
  {
    what: 'a file below a file',
    tar: await pack({ name: 'a', content: 'one' }, { name: 'a/b', content: 'two' }),
    refusal: '"a/b" needs a folder where the archive has a file.',
  },
  {
    what: 'a file with the name of a folder',
    tar: join(
      rawEntry({ name: 'any', type: 'x', content: paxRecord('path', 'a/') }),
      rawEntry({ name: 'a', content: 'x' }),
    ),
    refusal: notPlain('a/'),
  },
  { what: 'a file without a name', tar: join(rawEntry({ name: '.' })), refusal: 'an entry has no name.' },
];

const HEADERS: Hostile[] = [
  {
    what: 'a PAX header that renames a harmless file',
    tar: await pack({ name: 'harmless', content: 'x', pax: { path: '../outside' } }),
    refusal: notPlain('../outside'),
  },
  {
    what: 'a PAX header that leads a link elsewhere',
    tar: join(pax('linkpath', '/etc'), rawEntry({ name: 'link', type: '2', linkname: 'server' })),
    refusal: isLink('/etc'),
  },
  {
    what: 'a PAX header with the character zero',
    tar: join(pax('path', 'a\0b'), rawEntry({ name: 'a' })),
    refusal: notPlain('a\0b'),
  },
  {
    what: 'a PAX header of a sparse file',
    tar: join(pax('GNU.sparse.major', '1'), rawEntry({ name: 'GNUSparseFile.0/holes', content: 'x' })),
    refusal: '"GNUSparseFile.0/holes" is a sparse file; pack it whole (tar without --sparse).',
  },
  {
    what: 'a GNU long name that leads outside',
    tar: join(longName('../outside'), rawEntry({ name: 'harmless' })),
    refusal: notPlain('../outside'),
  },
  {
    what: 'a PAX header and a GNU long name that disagree',
    tar: join(pax('path', '../outside'), longName('harmless'), rawEntry({ name: 'harmless' })),
    refusal: notPlain('../outside'),
  },
  {
    what: 'a prefix that leads outside',
    tar: join(rawEntry({ prefix: '../..', name: 'note', content: 'x' })),
    refusal: notPlain('../../note'),
  },
  {
    what: 'a name that is not UTF-8',
    tar: join(rawEntry({ name: 'caf\xe9', encoding: 'latin1' })),
    refusal: notPlain('caf\ufffd'),
  },
];

describe.each(Object.entries(PACKINGS))('a %s is refused', (_, compress) => {
  for (const { what, tar, refusal } of [...NAMES, ...LINKS, ...THINGS, ...PLACES, ...HEADERS]) {
    test(`for ${what}, which the refusal names; nothing is written elsewhere`, async () => {
      const unpacked = await unpack(compress(tar));
      expect(unpacked.refusal).toBe(refusal);
      expect(unpacked.outside).toEqual(UNTOUCHED);
      expect(Object.values(unpacked.tree).filter((description) => description.startsWith('other'))).toEqual([]);
    });
  }
});
