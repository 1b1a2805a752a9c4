import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { packTar, paxRecord, rawEntry, TAR_END } from '../../support/tar.ts';
import { PACKINGS, UNTOUCHED, type Unpacked, unpack } from '../../support/unpacking.ts';

const RUNS = 70;
const TEST_TIMEOUT_MS = 300_000;

const HONEST = await packTar([
  { name: 'server', content: '#!/bin/sh\n', mode: 0o755 },
  { name: 'maps/', type: 'directory' },
  { name: 'maps/desert', content: 'sand'.repeat(300) },
  { name: `maps/${'long'.repeat(40)}`, content: 'sea' },
]);

/** A random change of bytes. Positions are in thousandths. */
const change = fc.record({
  kind: fc.constantFrom('flip', 'cut', 'repeat', 'drop', 'insert'),
  place: fc.nat({ max: 999 }),
  length: fc.nat({ max: 600 }),
  byte: fc.integer({ min: 1, max: 255 }),
});
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

describe('unpacking: with random changes', () => {
  for (const [packing, compress] of Object.entries(PACKINGS)) {
    const archive = compress(HONEST);
    test(
      `a ${packing} is refused or accepted, and stays in its directory`,
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
            expectContained(await unpack(changes.reduce(applyChange, archive)));
          }),
          { numRuns: RUNS },
        );
      },
      TEST_TIMEOUT_MS,
    );
  }

  test('in the content of a file, a tar is accepted with the changed content', async () => {
    const place = HONEST.indexOf('sand');
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 1_199 }), fc.integer({ min: 1, max: 127 }), async (distance, byte) => {
        const changed = Buffer.from(HONEST);
        changed[place + distance] = byte;
        const { refusal, contents } = await unpack(changed);
        expect(refusal).toBeUndefined();
        expect(contents['maps/desert']).toBe(changed.toString('utf8', place, place + 1_200));
      }),
      { numRuns: 30 },
    );
  });
});

const name = fc.constantFrom(
  'a',
  'b',
  './a',
  'a/b',
  'a/b/c',
  'a/',
  'b/',
  'a/b/',
  './',
  '.',
  '..',
  '../note',
  '../../note',
  '/note',
  'a/../../note',
  'a/..',
  'b//c',
  'b\\c',
  'A',
  '',
  ' ',
);
const entry = fc.record({
  name,
  // A file is as likely as all other types together.
  type: fc.oneof(fc.constantFrom('0', '5'), fc.constantFrom('1', '2', '3', '6', '7', 'x', 'L', 'S')),
  linkname: name,
  content: fc.constantFrom('', 'content', 'x'.repeat(600)),
});
type Entry = typeof entry extends fc.Arbitrary<infer Value> ? Value : never;

test(
  'unpacking: random entries in any order are all unpacked, or the archive is refused',
  async () => {
    let accepted_count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 5 }), async (entries) => {
        const unpacked = await unpack(Buffer.concat([...entries.map(toRaw), TAR_END]));
        expectContained(unpacked);
        if (unpacked.refusal !== undefined) return;
        accepted_count += 1;
        const files = entries.filter(({ type, name }) => type === '7' || (type === '0' && !name.endsWith('/')));
        if (entries.some(({ type }) => type === 'x' || type === 'L')) return;
        expect(unpacked.contents).toEqual(Object.fromEntries(files.map((file) => [plain(file.name), file.content])));
      }),
      { numRuns: 3 * RUNS },
    );
    expect(accepted_count).toBeGreaterThan(RUNS / 10);
  },
  TEST_TIMEOUT_MS,
);

function expectContained({ refusal, tree, outside }: Unpacked): void {
  expect(outside).toEqual(UNTOUCHED);
  for (const description of Object.values(tree)) expect(description).toMatch(/^(file (755|644)|folder 755)$/);
  if (refusal !== undefined) expect(refusal).toMatch(/^.{5,400}\.$/);
}

function applyChange(bytes: Uint8Array, { kind, place, length, byte }: Change): Uint8Array {
  const start = Math.floor((bytes.length * place) / 1_000);
  const [before, some, rest] = [bytes.slice(0, start), bytes.slice(start, start + length), bytes.slice(start + length)];
  switch (kind) {
    case 'flip':
      return Buffer.concat([before, some.map((old, index) => (index === 0 ? old ^ byte : old)), rest]);
    case 'cut':
      return before;
    case 'repeat':
      return Buffer.concat([before, some, some, rest]);
    case 'drop':
      return Buffer.concat([before, rest]);
    default:
      return Buffer.concat([before, Buffer.alloc(length, byte), some, rest]);
  }
}

function toRaw({ name, type, linkname, content }: Entry): Buffer {
  switch (type) {
    case 'x':
      return rawEntry({ name, type, content: paxRecord('path', linkname) });
    case 'L':
      return rawEntry({ name, type, content: `${linkname}\0` });
    case '5':
      return rawEntry({ name, type });
    default:
      return rawEntry({ name, type, linkname, content });
  }
}

function plain(path: string): string {
  return path.replace(/^(\.\/)+/, '');
}
