import { beforeAll, describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { CompactSign, importJWK } from 'jose';
import { ServiceError } from '../../src/platform/errors.ts';
import type { Caller, CallerKind } from '../../src/platform/tokens/caller.ts';
import { CALLER_KINDS, makeCaller } from '../support/callers.ts';
import { rejectionOf } from '../support/refusal.ts';
import { makeTokenMaker, playerKeyOf, type TokenMaker } from '../support/token-maker.ts';

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

let maker: TokenMaker;
beforeAll(async () => {
  maker = await makeTokenMaker();
});

const encode = (content: unknown): string => Buffer.from(JSON.stringify(content)).toString('base64url');

/** Returns the tokens that are not refused with TOKEN_INVALID, and what happened instead. */
async function findAccepted(candidates: string[]): Promise<unknown[]> {
  const accepted: unknown[] = [];
  for (const candidate of candidates) {
    const outcome: unknown = await maker.tokens.verify(candidate).catch((error: unknown) => error);
    const is_refused = outcome instanceof ServiceError && outcome.code === 'TOKEN_INVALID';
    if (!is_refused) accepted.push([candidate, outcome]);
  }
  return accepted;
}

/**
 * Signed with EdDSA, or with HS256. `same_ends`: how many other last characters decode to the same bytes. `bits_min`:
 * claims and signature have more bits than this.
 */
const SIGNED = [
  { kind: 'cloud', same_ends: 15, bits_min: 800 },
  { kind: 'player', same_ends: 3, bits_min: 700 },
] as const;

describe.each(SIGNED)('a token of the kind $kind is refused', ({ kind, same_ends, bits_min }) => {
  let caller: Caller;
  let token: string;
  /** The three parts of the token's JWS. */
  let header: string;
  let claims: string;
  let signature: string;
  beforeAll(async () => {
    caller = makeCaller(kind);
    token = await maker.tokens.issue(caller);
    [, header = '', claims = '', signature = ''] = token.split('.');
    // The service may cache the valid token now, and must not mistake similar ones for it.
    expect(await maker.tokens.verify(token)).toMatchObject(caller);
  });

  test('with any character of its JWS changed', async () => {
    const start = token.indexOf('.') + 1;
    const altered = [...token.slice(start)].flatMap((character, index) => {
      const next = BASE64URL[(BASE64URL.indexOf(character) + 1) % BASE64URL.length] ?? 'A';
      const others = new Set([next, 'A', '.', '=', '+', '\0', 'é']);
      others.delete(character);
      return [...others].map((other) => token.slice(0, start + index) + other + token.slice(start + index + 1));
    });
    expect(altered.length).toBeGreaterThan(1_000);
    expect(await findAccepted(altered)).toEqual([]);
  });

  test('with another last character that decodes to the same bytes', async () => {
    const same = [...BASE64URL]
      .map((last) => signature.slice(0, -1) + last)
      .filter((other) => other !== signature)
      .filter((other) => Buffer.from(other, 'base64url').equals(Buffer.from(signature, 'base64url')));
    expect(same).toHaveLength(same_ends);
    expect(await findAccepted(same.map((other) => `${kind}.${header}.${claims}.${other}`))).toEqual([]);
  });

  test('with any bit of its claims or signature flipped', async () => {
    const flipped = [claims, signature].flatMap((part) => {
      const bytes = Buffer.from(part, 'base64url');
      return Array.from({ length: bytes.length * 8 }, (_, bit) => {
        const other = Buffer.from(bytes);
        other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const text = other.toString('base64url');
        return part === claims ? `${kind}.${header}.${text}.${signature}` : `${kind}.${header}.${claims}.${text}`;
      });
    });
    expect(flipped.length).toBeGreaterThan(bits_min);
    expect(await findAccepted(flipped)).toEqual([]);
  });

  test('with the label of another kind, or without one', async () => {
    const labels = [
      'usr',
      'pub',
      'dev',
      'dev_player',
      'lobby',
      'player',
      'env_svc',
      'device',
      'cloud',
      '',
      kind.slice(0, -1),
      `${kind}s`,
      kind.toUpperCase(),
      kind.charAt(0).toUpperCase() + kind.slice(1),
    ].filter((label) => label !== kind);
    expect(await findAccepted(labels.map((label) => `${label}.${header}.${claims}.${signature}`))).toEqual([]);
  });

  test('with more or fewer parts, or with anything around them', async () => {
    const jws = `${header}.${claims}.${signature}`;
    const candidates = [
      '',
      '.',
      '...',
      kind,
      `${header}.${claims}`,
      `${header}.${claims}.`,
      `${kind}.${header}.${claims}`,
      `${kind}.${header}.${claims}.`,
      `${kind}.${header}..${signature}`,
      `${kind}..${claims}.${signature}`,
      `${kind}.${jws}.`,
      `${kind}.${kind}.${jws}`,
      `.${jws}.`,
      `${kind}.${jws} `,
      `${kind} .${jws}`,
      `${kind}.${jws}=`,
      `${kind}.${jws}==`,
      `${kind}.${jws}\n`,
      `${kind}.${header}.${claims}.\n${signature}`,
      `${kind}.${header}.${claims}==.${signature}`,
      `${token}${token}`,
      `Bearer ${token}`,
      token.toUpperCase(),
      JSON.stringify({ payload: claims, protected: header, signature }),
    ];
    expect(await findAccepted(candidates)).toEqual([]);
  });

  test('with a great length', async () => {
    const lengths = [8_193, 100_000, 10_000_000];
    const candidates = lengths.flatMap((length) => [
      'a'.repeat(length),
      '.'.repeat(length),
      token + 'A'.repeat(length),
    ]);
    expect(await findAccepted(candidates)).toEqual([]);
  });

  test("with the signature of another service, also on this one's claims", async () => {
    const { tokens: others } = await makeTokenMaker();
    expect(await findAccepted(await Promise.all(CALLER_KINDS.map((kind) => others.issue(makeCaller(kind)))))).toEqual(
      [],
    );
    const [, , , other_signature = ''] = (await others.issue(caller)).split('.');
    expect(await findAccepted([`${kind}.${header}.${claims}.${other_signature}`])).toEqual([]);
  });

  test('with another algorithm, or with none', async () => {
    const { key } = maker;
    const other = await makeTokenMaker();
    const public_key = Buffer.from(key.x ?? '', 'base64url');
    const hmac = (head: string, secret: Uint8Array | string) =>
      createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url');
    const confused = ['HS256', 'EdDSA'].flatMap((alg) => {
      const head = encode({ typ: 'JWT', alg });
      return [public_key, key.x ?? '', JSON.stringify(key), ''].map(
        (secret) => `${head}.${claims}.${hmac(head, secret)}`,
      );
    });
    const heads = [
      { alg: 'none' },
      { alg: 'None' },
      { alg: 'HS256' },
      { alg: 'RS256' },
      { alg: 'ES256' },
      { alg: 'Ed25519' },
      { alg: ['EdDSA'] },
      { alg: null },
      {},
      [],
      null,
      'EdDSA',
      { alg: 'EdDSA', crit: ['b64'], b64: false },
      { alg: 'EdDSA', jwk: { kty: 'OKP', crv: 'Ed25519', x: other.key.x } },
      { alg: 'EdDSA', jku: 'http://127.0.0.1/keys' },
      { alg: 'EdDSA', kid: '../../etc/passwd' },
    ].map(encode);
    const unsigned = heads.flatMap((head) => [`${head}.${claims}.${signature}`, `${head}.${claims}.`]);
    expect(await findAccepted([...confused, ...unsigned].map((jws) => `${kind}.${jws}`))).toEqual([]);
  });

  test('with the signature of a key that it contains', async () => {
    const other = await makeTokenMaker();
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: other.key.x ?? '' };
    const forged = await new CompactSign(Buffer.from(claims, 'base64url'))
      .setProtectedHeader({ typ: 'JWT', alg: 'EdDSA', jwk })
      .sign(await importJWK(other.key, 'EdDSA'));
    expect(await findAccepted([`${kind}.${forged}`])).toEqual([]);
  });

  test('as invalid and not as expired if it is both', async () => {
    const { tokens } = await makeTokenMaker();
    for (const bearer of [makeCaller('identity'), caller]) {
      const forged = await tokens.issue(bearer, { lifetime_ms: -86_400_000 });
      expect((await rejectionOf(ServiceError, tokens.verify(forged))).code).toBe('CLAIMS_ENTITLEMENT_EXPIRED');
      expect(await findAccepted([forged])).toEqual([]);
    }
  });

  test('in any other form', async () => {
    const piece = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      fc.json().map((text) => Buffer.from(text).toString('base64url')),
      fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64url')),
      fc.constantFrom(header, claims, signature, kind, '__proto__', 'null'),
    );
    const garbage = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('.'));
    await fc.assert(
      fc.asyncProperty(garbage, async (text) => {
        fc.pre(text !== token && text !== `${header}.${claims}.${signature}`);
        expect(await findAccepted([text])).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

test('tokens: only player tokens are accepted with the signature of player tokens', async () => {
  const head = encode({ typ: 'JWT', alg: 'HS256' });
  const sign = (payload: string) =>
    createHmac('sha256', playerKeyOf(maker.key)).update(`${head}.${payload}`).digest('base64url');
  const forge = async (kind: CallerKind) => {
    const [, , payload = ''] = (await maker.tokens.issue(makeCaller(kind))).split('.');
    return `${head}.${payload}.${sign(payload)}`;
  };
  const others = CALLER_KINDS.filter((kind) => kind !== 'player');
  expect(others).toHaveLength(10);
  expect(await findAccepted(await Promise.all(others.map(forge)))).toEqual([]);
  expect(await findAccepted([await forge('player')])).toHaveLength(1);
});
