import { describe, expect, test } from 'bun:test';
import { join, resolve } from 'node:path';
import { CATALOGUE } from '../../src/platform/error-catalogue.ts';
import { documentationAnchor, type ErrorCode, ServiceError } from '../../src/platform/errors.ts';

const ROOT = resolve(import.meta.dir, '../..');

const isCode = (name: string): name is ErrorCode => name in CATALOGUE;
const CODES = Object.keys(CATALOGUE).filter(isCode);

/** Returns the codes that the source throws or passes on; a code that only routes or documents list does not count. */
async function readThrown(): Promise<Set<string>> {
  const thrown = new Set<string>();
  for await (const path of new Bun.Glob('src/**/*.ts').scan({ cwd: ROOT })) {
    const text = await Bun.file(join(ROOT, path)).text();
    const only_lists = /routes\.ts$|openapi\.ts$|platform\/errors\.ts$/.test(path);
    const pattern = only_lists ? /ServiceError\(\s*'([A-Z_]+)'/g : /'([A-Z_]+)'/g;
    for (const [, code = ''] of text.matchAll(pattern)) thrown.add(code);
  }
  return thrown;
}

describe('the error catalogue', () => {
  test("has only statuses that Rivet's clients distinguish, and 426 for WebSockets; 409 is not among them, because they repeat it", () => {
    const statuses = new Set<number>(CODES.map((code) => CATALOGUE[code].status));
    expect([...statuses].sort()).toEqual([400, 401, 403, 404, 413, 426, 429, 500, 503]);
  });

  test('has status 404 for codes of missing things and for no other', () => {
    const names = CODES.filter((code) => code.endsWith('_NOT_FOUND') && code !== 'TOKEN_REFRESH_NOT_FOUND');
    const by_status = CODES.filter((code) => CATALOGUE[code].status === 404);
    expect(by_status).toEqual(names);
  });

  test("has Rivet's statuses for the codes that are not 400 there", () => {
    const RIVET_STATUSES = {
      API_UNAUTHORIZED: 401,
      CLAIMS_MISSING_ENTITLEMENT: 401,
      CLAIMS_ENTITLEMENT_EXPIRED: 401,
      API_FORBIDDEN: 403,
      GROUP_INSUFFICIENT_PERMISSIONS: 403,
      GROUP_NOT_MEMBER: 403,
      IDENTITY_NOT_ADMIN: 403,
      TOKEN_REFRESH_NOT_FOUND: 403,
      TOKEN_REVOKED: 403,
      API_NOT_FOUND: 404,
      ERROR: 500,
    } as const;
    for (const [code, status] of Object.entries(RIVET_STATUSES))
      expect(CATALOGUE).toHaveProperty([code, 'status'], status);
  });

  test.each(CODES)('%s has a message of one or two sentences', (code) => {
    const { message } = CATALOGUE[code];
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(message).toMatch(/^[A-Z"].*[^.]\.$/);
    expect(message).not.toMatch(/ {2}|\n|\bsql\b|undefined/i);
    // Everything in braces is a parameter.
    expect(message.replace(/\{[a-z]+(_[a-z]+)*\}/g, '')).not.toMatch(/[{}]/);
  });

  test('is sorted by code', () => {
    expect(CODES).toEqual(CODES.toSorted());
  });

  test('gives each code its own anchor in the documentation', () => {
    const anchors = CODES.map(documentationAnchor);
    expect(new Set(anchors).size).toBe(CODES.length);
    for (const anchor of anchors) expect(anchor).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(documentationAnchor('MATCHMAKER_LOBBY_FULL')).toBe('matchmaker-lobby-full');
  });

  test('has no code that is never thrown', async () => {
    const thrown = await readThrown();
    expect(CODES.filter((code) => !thrown.has(code))).toEqual([]);
  });
});

describe('a ServiceError', () => {
  test('has its parameters filled in literally, once', () => {
    const { message } = new ServiceError('API_BAD_QUERY_PARAMETER', {
      parameter: '$& {error}',
      error: "$1 {parameter} $'",
    });
    expect(message).toBe(`The query parameter "$& {error}" is invalid: $1 {parameter} $'.`);
  });

  test('has the status, message and retry time of its code, and what the thrower adds', () => {
    const plain = new ServiceError('GROUP_FULL', { max: 7 });
    expect(plain).toMatchObject({ code: 'GROUP_FULL', status: 400, metadata: undefined, retry_after_ms: undefined });
    expect(plain.message).toBe('The group already has the maximum of 7 members. Remove one first.');
    expect(new ServiceError('DATABASE_BUSY', {}).retry_after_ms).toBe(1_000);
    expect(new ServiceError('DATABASE_BUSY', {}, { retry_after_ms: 9 }).retry_after_ms).toBe(9);
    const cause = new Error('why');
    expect(new ServiceError('ERROR', {}, { cause, metadata: null })).toMatchObject({ cause, metadata: null });
  });
});
