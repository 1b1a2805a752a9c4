import { hkdfSync } from 'node:crypto';
import { CompactSign, compactVerify, importJWK, type JWK } from 'jose';
import { LRUCache } from 'lru-cache';
import { CLOCK_SKEW_MAX_MS, type Clock } from '../clock.ts';
import { isSameSecret } from '../constant-time.ts';
import { ServiceError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../units.ts';
import type { Caller, CallerKind, CallerOf } from './caller.ts';
import { type Claims, decodeClaims, encodeClaims } from './claims.ts';

const TOKEN_LENGTH_MAX = 8_192;
const VERIFIED_MAX = 10_000;

/** How long a token of each kind is valid. */
export const LIFETIMES_MS: Record<CallerKind, number> = {
  identity: 15 * MINUTE_MS,
  public: 15 * 365 * DAY_MS,
  development: 365 * DAY_MS,
  lobby: 365 * DAY_MS,
  player: 90 * DAY_MS,
  development_player: 365 * DAY_MS,
  cloud: 365 * DAY_MS,
  service: 15 * 365 * DAY_MS,
  device_link: HOUR_MS,
  share: 30 * DAY_MS,
  metrics: 365 * DAY_MS,
};

/**
 * Kinds that are issued by the thousand and verified only by this service. They are signed with HMAC, which costs a tenth
 * of EdDSA. An HMAC is not accepted for other kinds.
 */
const HMAC_KINDS: readonly CallerKind[] = ['player'];
const HMAC_KEY_PURPOSE = 'muster player tokens';
const BASE64URL = { alphabet: 'base64url', omitPadding: true } as const;
const HEADER = { typ: 'JWT', alg: 'EdDSA' };
const HMAC_HEADER = Buffer.from(JSON.stringify({ ...HEADER, alg: 'HS256' })).toString('base64url');

/** The readable label in front of a token. It is not signed, but it must match the token's kind. */
export const LABELS: Record<CallerKind, string> = {
  identity: 'usr',
  public: 'pub',
  development: 'dev',
  lobby: 'lobby',
  player: 'player',
  development_player: 'dev_player',
  cloud: 'cloud',
  service: 'env_svc',
  device_link: 'device',
  share: 'share',
  metrics: 'metrics',
};

/** The id of a token, and when it was issued. */
export interface TokenStamp {
  token_id: string;
  at: Date;
}

export interface IssueOptions {
  /** Part of the label, such as the namespace's name id. */
  suffix?: string;
  lifetime_ms?: number;
  /** The id and time of the token, if it was authorized earlier or must be the same each time it is issued. */
  stamp?: TokenStamp;
}

/** What is known of a verified token. */
export interface Verified {
  caller: Caller;
  /**
   * When the token expires, in Unix milliseconds. What is made from it expires then too, or it could be renewed without
   * end.
   */
  expires_at: number;
  /** End of the leeway after `expires_at`, because clocks differ. */
  accepted_until: number;
}

export interface Tokens {
  /** Issues a token for the caller. */
  issue(caller: Caller, options?: IssueOptions): MaybePromise<string>;
  /** Returns the caller of a token. Throws TOKEN_INVALID, or CLAIMS_ENTITLEMENT_EXPIRED. */
  verify(token: string): Promise<Caller>;
  /** Returns the caller of a recently verified token, without a promise; undefined for other tokens, even valid ones. */
  recall(token: string): Caller | undefined;
  /** Like `verify`, but also returns when the token expires. */
  read(token: string): Promise<Verified>;
  /** Verifies a token in the body of a request. Throws TOKEN_ERROR if it is invalid or of another kind. */
  verifyKind<Kind extends CallerKind>(token: string, kinds: readonly Kind[]): Promise<CallerOf<Kind>>;
}

/**
 * Creates the issuer of tokens. They have the form of the reference API: a label, a dot, and a JWS whose payload is a
 * protobuf message. They are signed with EdDSA, those of players with HS256 by a key derived from the same key
 * (RFC 5869). Verified EdDSA tokens are cached, because a namespace's public token comes with every request.
 */
export async function createTokens(key: JWK, clock: Clock): Promise<Tokens> {
  const { d: _private, ...public_part } = key;
  const signing_key = await importJWK(key, 'EdDSA');
  const verifying_key = await importJWK(public_part, 'EdDSA');
  const hmac = new Bun.CryptoHasher('sha256', deriveHmacKey(key));
  /** Claims by the signed part of a token, so that a sender cannot add entries with made-up labels. */
  const verified = new LRUCache<string, Claims>({ max: VERIFIED_MAX });

  async function verifyEdDSA(parts: string[]): Promise<Uint8Array> {
    const jws = compactVerify(parts.join('.'), verifying_key, { algorithms: ['EdDSA'] });
    const { payload } = await jws.catch((cause: unknown) => {
      throw new ServiceError('TOKEN_INVALID', {}, { cause });
    });
    if (!isCanonical(parts.at(-1) ?? '')) throw new ServiceError('TOKEN_INVALID', {});
    return payload;
  }

  /** Returns the claims of a token that was verified earlier, with this label or another one of its kind. */
  function recallClaims(token: string): Claims | undefined {
    const { label, jws } = splitLabel(token);
    const claims = verified.get(jws);
    return claims && hasLabel(claims, label) ? claims : undefined;
  }

  async function readClaims(token: string): Promise<Claims> {
    if (token.length > TOKEN_LENGTH_MAX) throw new ServiceError('TOKEN_INVALID', {});
    const { label, jws } = splitLabel(token);
    const parts = jws.split('.');
    const is_hmac = parts[0] === HMAC_HEADER;
    const payload = is_hmac ? verifyHmac(parts, hmac) : await verifyEdDSA(parts);
    const claims = withIssueTime(decodeClaims(payload));
    const is_ours = claims && (!is_hmac || isOfKind(claims.caller, HMAC_KINDS)) && hasLabel(claims, label);
    if (!is_ours) throw new ServiceError('TOKEN_INVALID', {});
    // Tokens of players are used only a few times.
    if (!is_hmac) verified.set(jws, claims);
    return claims;
  }

  const isExpired = ({ expires_at }: Claims) => clock.now().getTime() > expires_at + CLOCK_SKEW_MAX_MS;

  async function read(token: string): Promise<Verified> {
    const claims = recallClaims(token) ?? (await readClaims(token));
    if (isExpired(claims)) throw new ServiceError('CLAIMS_ENTITLEMENT_EXPIRED', {});
    const { caller, expires_at } = claims;
    return { caller, expires_at, accepted_until: expires_at + CLOCK_SKEW_MAX_MS };
  }

  const verify = async (token: string): Promise<Caller> => (await read(token)).caller;

  return {
    read,
    verify,
    recall(token) {
      const claims = recallClaims(token);
      return claims && !isExpired(claims) ? claims.caller : undefined;
    },
    async verifyKind(token, kinds) {
      const caller = await verify(token).catch((cause: unknown) => {
        const is_expired = cause instanceof ServiceError && cause.code === 'CLAIMS_ENTITLEMENT_EXPIRED';
        const reason = is_expired ? 'it has expired' : 'it was not signed by this service';
        throw new ServiceError('TOKEN_ERROR', { reason }, { cause });
      });
      if (isOfKind(caller, kinds)) return caller;
      const reason = `it is of the kind ${caller.kind}, but must be of the kind ${kinds.join(' or ')}`;
      throw new ServiceError('TOKEN_ERROR', { reason });
    },
    issue(caller, { suffix, lifetime_ms = LIFETIMES_MS[caller.kind], stamp } = {}) {
      const { token_id, at } = stamp ?? { token_id: crypto.randomUUID(), at: clock.now() };
      const issued_at = at.getTime();
      const payload = encodeClaims({ expires_at: issued_at + lifetime_ms, issued_at, token_id, caller });
      const label = suffix ? `${LABELS[caller.kind]}_${suffix.replaceAll('-', '_')}` : LABELS[caller.kind];
      const jws = isOfKind(caller, HMAC_KINDS)
        ? signWithHmac(payload, hmac)
        : new CompactSign(payload).setProtectedHeader(HEADER).sign(signing_key);
      return typeof jws === 'string' ? `${label}.${jws}` : jws.then((signed) => `${label}.${signed}`);
    },
  };
}

/** Derives the HMAC key from the signing key, so that all processes on a database have the same one. */
function deriveHmacKey({ d = '' }: JWK): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', HMAC_KEY_PURPOSE, 32));
}

/** Signs a JWS with HS256 (RFC 7515 A.1) as jose does, but without WebCrypto's hop to another thread. */
function signWithHmac(payload: Uint8Array, hmac: Bun.CryptoHasher): string {
  const signed = `${HMAC_HEADER}.${payload.toBase64(BASE64URL)}`;
  return `${signed}.${hmacSignatureOf(signed, hmac)}`;
}

function hmacSignatureOf(signed: string, hmac: Bun.CryptoHasher): string {
  return hmac.copy().update(signed).digest('base64url');
}

/** Returns the payload of a JWS with HS256. The signature must equal the expected text in every character. */
function verifyHmac([header, payload = '', signature = '', ...more]: string[], hmac: Bun.CryptoHasher): Uint8Array {
  const is_ours = more.length === 0 && isSameSecret(signature, hmacSignatureOf(`${header}.${payload}`, hmac));
  if (!is_ours) throw new ServiceError('TOKEN_INVALID', {});
  // Reading a Buffer would take twice as long.
  return Uint8Array.fromBase64(payload, BASE64URL);
}

/** Returns whether a signature is in its only valid spelling. The last character has unused bits, which must be zero. */
function isCanonical(signature: string): boolean {
  return Buffer.from(signature, 'base64url').toString('base64url') === signature;
}

/** Splits a token into its label, if it has one, and its three signed parts. */
function splitLabel(token: string): { label: string | undefined; jws: string } {
  let start = token.length;
  for (let dots = 0; dots < 3; dots += 1) {
    start = start > 0 ? token.lastIndexOf('.', start - 1) : -1;
    if (start < 0) return { label: undefined, jws: token };
  }
  return { label: token.slice(0, start), jws: token.slice(start + 1) };
}

function hasLabel({ caller }: Claims, label: string | undefined): boolean {
  if (label === undefined) return true;
  const own = LABELS[caller.kind];
  return label === own || (label.startsWith(`${own}_`) && !label.includes('.'));
}

/** Adds the time of issue to callers whose tokens can be revoked by age. */
function withIssueTime(claims: Claims | undefined): Claims | undefined {
  if (!claims || !isOfKind(claims.caller, ['cloud', 'service'])) return claims;
  return { ...claims, caller: { ...claims.caller, issued_at: claims.issued_at } };
}

/** Returns whether a caller is of one of the kinds. */
export function isOfKind<Kind extends CallerKind>(caller: Caller, kinds: readonly Kind[]): caller is CallerOf<Kind> {
  return kinds.some((kind) => kind === caller.kind);
}
