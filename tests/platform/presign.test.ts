import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ServiceError } from '../../src/platform/errors.ts';
import { createSignedLinks } from '../../src/platform/objects/links.ts';
import { createPresigner, type Presigner, type UploadPart } from '../../src/platform/objects/presign.ts';
import { refusalOf } from '../support/refusal.ts';

const HOUR_MS = 3_600_000;
const PUBLIC_URL = 'https://play.example.com';
const KEY = { kty: 'oct', k: Buffer.alloc(32, 7).toString('base64url') };

const PART: UploadPart = {
  upload_id: '0190a0b0-c0d0-4e0f-8a0b-0c0d0e0f0a0b',
  file_number: 3,
  part_number: 1,
  path: 'maps/Änd&signature=x #1%.bin',
  byte_offset: 104_857_600,
  content_length: 12_345,
};

function makePresigner(key = KEY): { presigner: Presigner; now: { ms: number } } {
  const now = { ms: Date.parse('2026-01-31T12:00:00.000Z') };
  return { presigner: createPresigner(key, { now: () => new Date(now.ms) }, PUBLIC_URL), now };
}

const { presigner } = makePresigner();
const url = presigner.sign(PART, false);

/** Returns the addresses that are accepted. */
function findAccepted(urls: string[]): string[] {
  return urls.filter((candidate) => {
    try {
      presigner.verify(candidate);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'UPLOAD_SIGNATURE_INVALID') return false;
      throw error;
    }
  });
}

describe('an upload address is refused', () => {
  test('with any character changed', () => {
    const altered = [...url].slice(PUBLIC_URL.length + 1).flatMap((character, index) => {
      const place = PUBLIC_URL.length + 1 + index;
      const flipped = Array.from({ length: 7 }, (_, bit) => String.fromCharCode(character.charCodeAt(0) ^ (1 << bit)));
      return [...flipped, '/', '?', '&', '=', '%', '#', '\\', '.', ' ', 'é']
        .filter((other) => other !== character)
        .map((other) => url.slice(0, place) + other + url.slice(place + 1));
    });
    expect(altered.length).toBeGreaterThan(3_000);
    expect(findAccepted(altered)).toEqual([]);
  });

  test('with any character removed, doubled or inserted', () => {
    const places = Array.from({ length: url.length - PUBLIC_URL.length }, (_, index) => PUBLIC_URL.length + index + 1);
    const altered = places.flatMap((place) => [
      url.slice(0, place - 1) + url.slice(place),
      ...['#', '\t', '\n', '&', '%00', url.charAt(place - 1)].map(
        (added) => url.slice(0, place) + added + url.slice(place),
      ),
    ]);
    expect(findAccepted(altered).filter((accepted) => accepted !== url)).toEqual([]);
  });

  test('with a changed or repeated parameter', () => {
    const { searchParams } = new URL(url);
    const fields = [...searchParams.keys()];
    expect(fields).toEqual(['file', 'part', 'path', 'offset', 'length', 'expires', 'signature']);
    const altered = fields.flatMap((name) => {
      const changed = new URL(url);
      changed.searchParams.set(name, `${searchParams.get(name)}0`);
      const without = new URL(url);
      without.searchParams.delete(name);
      const twice = `${url}&${name}=${searchParams.get(name)}`;
      const before = url.replace('?', `?${name}=0&`);
      return [changed.href, without.href, twice, before];
    });
    const another_upload = url.replace(PART.upload_id, crypto.randomUUID());
    const in_capitals = url.replace(PART.upload_id, PART.upload_id.toUpperCase());
    expect(findAccepted([...altered, another_upload, in_capitals])).toEqual([]);
  });

  test('with the signature of another address', () => {
    const [, other_signature] = presigner.sign({ ...PART, content_length: 12_346 }, false).split('&signature=');
    const [signed] = url.split('&signature=');
    expect(findAccepted([`${signed}&signature=${other_signature}`, `${signed}&signature=`, signed ?? ''])).toEqual([]);
  });

  test('with the signature of another service', () => {
    const { presigner: other } = makePresigner({ kty: 'oct', k: Buffer.alloc(32, 8).toString('base64url') });
    expect(findAccepted([other.sign(PART, false)])).toEqual([]);
  });

  test.each([
    [false, HOUR_MS],
    [true, 6 * HOUR_MS],
  ])('after its expiry (multipart: %p): after %d ms', (is_multipart, lifetime_ms) => {
    const { presigner: mine, now } = makePresigner();
    const address = mine.sign(PART, is_multipart);
    now.ms += lifetime_ms;
    expect(mine.verify(address)).toEqual(PART);
    now.ms += 1;
    expect(refusalOf(ServiceError, () => mine.verify(address))).toMatchObject({
      code: 'UPLOAD_SIGNATURE_INVALID',
      status: 403,
    });
  });
});

test('presigned addresses: an upload address cannot be read from, and a link cannot be uploaded to', () => {
  const clock = { now: () => new Date() };
  const links = createSignedLinks(KEY, clock, PUBLIC_URL);
  const uploads = createPresigner(KEY, clock, PUBLIC_URL);
  const link = links.sign(`/uploads/${PART.upload_id}`, { length: '5' });
  expect(links.verify(link).get('length')).toBe('5');
  expect(refusalOf(ServiceError, () => uploads.verify(link)).code).toBe('UPLOAD_SIGNATURE_INVALID');
  const { code, status } = refusalOf(ServiceError, () => links.verify(uploads.sign(PART, false)));
  expect([code, status]).toEqual(['LINK_INVALID', 403]);
});

test('presigned addresses: they contain everything that they allow, for any file name', () => {
  expect(url).toStartWith(`${PUBLIC_URL}/uploads/${PART.upload_id}?file=3&part=1&path=maps%2F`);
  const part = fc.record({
    upload_id: fc.uuid(),
    file_number: fc.nat(),
    part_number: fc.nat(),
    path: fc.string({ unit: 'grapheme', maxLength: 100 }),
    byte_offset: fc.maxSafeNat(),
    content_length: fc.maxSafeNat(),
  });
  fc.assert(
    fc.property(part, (wanted) => {
      expect(presigner.verify(presigner.sign(wanted, true))).toEqual(wanted);
    }),
    { numRuns: 500 },
  );
});

test('presigned addresses: they are valid on every host name of the service', () => {
  expect(presigner.verify(url.replace(PUBLIC_URL, 'http://127.0.0.1:8080'))).toEqual(PART);
});

test.each([{ kty: 'oct' }, { kty: 'oct', k: '' }, { kty: 'oct', k: 'c2hvcnQ' }])(
  'presigned addresses: an invalid key signs nothing: %j',
  (key) => {
    expect(() => createPresigner(key, { now: () => new Date() }, PUBLIC_URL)).toThrow('is a secret');
  },
);
