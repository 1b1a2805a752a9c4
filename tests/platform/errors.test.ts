import { describe, expect, test } from 'bun:test';
import { join, resolve } from 'node:path';
import { CATALOGUE } from '../../src/platform/error-catalogue.ts';
import { documentationAnchor, type ErrorCode, ServiceError } from '../../src/platform/errors.ts';

const ROOT = resolve(import.meta.dir, '../..');

const isCode = (name: string): name is ErrorCode => name in CATALOGUE;
const CODES = Object.keys(CATALOGUE).filter(isCode);

/** The codes that the source throws, or hands to what throws them; those that routes and documents only list do not count. */
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

describe('the catalogue of errors', () => {
  test("has only statuses that Rivet's clients distinguish, and no 409, which they repeat", () => {
    const statuses = new Set<number>(CODES.map((code) => CATALOGUE[code].status));
    expect([...statuses].sort()).toEqual([400, 401, 403, 404, 413, 429, 500, 503]);
  });

  test('has 404 for codes of missing things, and for no other', () => {
    const by_name = CODES.filter((code) => code.endsWith('_NOT_FOUND') && code !== 'TOKEN_REFRESH_NOT_FOUND');
    const by_status = CODES.filter((code) => CATALOGUE[code].status === 404);
    expect(by_status).toEqual(by_name);
  });

  test("has Rivet's statuses for the codes that are not 400 there (field-behaviour 3.2)", () => {
    const FIELD = {
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
    for (const [code, status] of Object.entries(FIELD)) expect(CATALOGUE).toHaveProperty([code, 'status'], status);
  });

  test.each(CODES)('%s is one sentence or two for the caller', (code) => {
    const { message } = CATALOGUE[code];
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(message).toMatch(/^[A-Z"].*[^.]\.$/);
    expect(message).not.toMatch(/ {2}|\n|\bsql\b|undefined/i);
    // What stands between braces is filled in: nothing of them is left that is no parameter.
    expect(message.replace(/\{[a-z]+(_[a-z]+)*\}/g, '')).not.toMatch(/[{}]/);
  });

  test('is in the order of the alphabet', () => {
    expect(CODES).toEqual(CODES.toSorted());
  });

  test('leads each code to a place of its own in the documentation', () => {
    const anchors = CODES.map(documentationAnchor);
    expect(new Set(anchors).size).toBe(CODES.length);
    for (const anchor of anchors) expect(anchor).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(documentationAnchor('MATCHMAKER_LOBBY_FULL')).toBe('matchmaker-lobby-full');
  });

  test('has no code that nothing throws', async () => {
    const thrown = await readThrown();
    expect(CODES.filter((code) => !thrown.has(code))).toEqual([]);
  });
});

describe('an error of the catalogue', () => {
  test('has its parameters filled in, whatever is in them, and nothing twice', () => {
    const { message } = new ServiceError('API_BAD_QUERY_PARAMETER', {
      parameter: '$& {error}',
      error: "$1 {parameter} $'",
    });
    expect(message).toBe(`The query parameter "$& {error}" is invalid: $1 {parameter} $'.`);
  });

  test('has what was said of it, and says when to come back only if that is of use', () => {
    const plain = new ServiceError('GROUP_FULL', { max: 7 });
    expect(plain).toMatchObject({ code: 'GROUP_FULL', status: 400, metadata: undefined, retry_after_ms: undefined });
    expect(plain.message).toBe('The group already has the maximum of 7 members. Remove one first.');
    expect(new ServiceError('DATABASE_BUSY', {}).retry_after_ms).toBe(1_000);
    expect(new ServiceError('DATABASE_BUSY', {}, { retry_after_ms: 9 }).retry_after_ms).toBe(9);
    const cause = new Error('why');
    expect(new ServiceError('ERROR', {}, { cause, metadata: null })).toMatchObject({ cause, metadata: null });
  });
});
