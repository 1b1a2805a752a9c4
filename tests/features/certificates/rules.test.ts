import { describe, expect, test } from 'bun:test';
import { CertificateError, parseCertificate } from '../../../src/features/certificates/certificate.ts';
import { renewalOf, retryAfter, selectCertificates } from '../../../src/features/certificates/rules.ts';
import { makeCertificate } from '../../support/network/tls.ts';
import { refusalOf } from '../../support/refusal.ts';

const DAY_MS = 24 * 3_600_000;
const NOW = new Date('2030-01-01T00:00:00Z');
const daysFromNow = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

const certificate = (name: string, names: string[], from_days: number, to_days: number) => ({
  certificate: name,
  key: 'key',
  names,
  valid_from: daysFromNow(from_days),
  expires_at: daysFromNow(to_days),
});

const select = (...certificates: ReturnType<typeof certificate>[]) =>
  [...selectCertificates(certificates, NOW)].map(([name, { certificate: selected }]) => [name, selected]);

describe('certificates: a pair of files', () => {
  test('without a certificate is refused', async () => {
    const { key } = await makeCertificate(['a.example.com']);
    expect(refusalOf(CertificateError, () => parseCertificate({ certificate: 'none', key })).message).toBe(
      'has no certificate in PEM',
    );
  });

  test('without a key is refused', async () => {
    const { certificate } = await makeCertificate(['a.example.com']);
    expect(refusalOf(CertificateError, () => parseCertificate({ certificate, key: certificate })).message).toBe(
      'has no private key in PEM without a passphrase',
    );
  });

  test('with the key of another certificate is refused', async () => {
    const [{ certificate }, { key }] = [
      await makeCertificate(['a.example.com']),
      await makeCertificate(['b.example.com']),
    ];
    expect(refusalOf(CertificateError, () => parseCertificate({ certificate, key })).message).toBe(
      'belongs to another private key',
    );
  });

  test('for no host is refused', async () => {
    const pair = await makeCertificate([]);
    expect(refusalOf(CertificateError, () => parseCertificate(pair)).message).toContain('names no host');
  });

  test('is read with its names and dates', async () => {
    const dates = { not_before: daysFromNow(0), not_after: daysFromNow(90) };
    const pair = await makeCertificate(['Play.Example.com', '*.example.com'], dates);
    const { names, valid_from, expires_at } = parseCertificate(pair);
    expect(names).toEqual(['play.example.com', '*.example.com']);
    expect([valid_from, expires_at]).toEqual([daysFromNow(0), daysFromNow(90)]);
  });
});

describe('certificates: of those for one name', () => {
  test('the first certificate is served', () => {
    expect(select(certificate('one', ['a'], -1, 5), certificate('two', ['a', 'b'], -1, 90))).toEqual([
      ['a', 'one'],
      ['b', 'two'],
    ]);
  });

  test('an expired certificate is served only if there is no other', () => {
    const expired = certificate('expired', ['a', 'b'], -90, -1);
    expect(select(expired, certificate('two', ['a'], -1, 90))).toEqual([
      ['a', 'two'],
      ['b', 'expired'],
    ]);
  });

  test('an expired certificate is not served for a name that a valid wildcard certificate covers', () => {
    const [wildcard, expired] = [certificate('two', ['*.a'], -1, 90), certificate('expired', ['b.a', 'b'], -90, -1)];
    expect(select(expired, wildcard)).toEqual([
      ['*.a', 'two'],
      ['b', 'expired'],
    ]);
    expect(select(expired, certificate('old', ['*.a'], -90, -1)).map(([name]) => name)).toEqual(['b.a', 'b', '*.a']);
  });

  test('a certificate that is not valid yet is not served', () => {
    expect(select(certificate('early', ['a'], 1, 90), certificate('now', ['a'], -1, 90))).toEqual([['a', 'now']]);
  });
});

test('certificates: renewal is due after two thirds of the lifetime', () => {
  expect(renewalOf({ valid_from: daysFromNow(0), expires_at: daysFromNow(90) })).toEqual(daysFromNow(60));
});

test('certificates: failed orders wait longer each time, up to 12 hours', () => {
  const minutes = [1, 2, 3, 8, 9, 100].map((failures) => retryAfter(failures) / 60_000);
  expect(minutes).toEqual([5, 10, 20, 640, 720, 720]);
});
