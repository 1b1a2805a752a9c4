import { describe, expect, test } from 'bun:test';
import { createHmac, createPublicKey, verify } from 'node:crypto';
import { ServiceError } from '../../src/platform/errors.ts';
import type { CallerKind } from '../../src/platform/tokens/caller.ts';
import { decodeClaims } from '../../src/platform/tokens/claims.ts';
import { readMessage } from '../../src/platform/tokens/messages.ts';
import { CALLER_KINDS, makeCaller } from '../support/callers.ts';
import { rejectionOf } from '../support/refusal.ts';
import { makeTokenMaker, playerKeyOf } from '../support/token-maker.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Tolerance for clocks of several machines. */
const LEEWAY_MS = MINUTE_MS;

/** The form of each kind, as in the reference API: its label, the number of its entitlement, its lifetime. */
const FORMS: Record<CallerKind, { label: string; entitlement: number; lifetime_ms: number }> = {
  identity: { label: 'usr', entitlement: 2, lifetime_ms: 15 * MINUTE_MS },
  public: { label: 'pub', entitlement: 3, lifetime_ms: 15 * 365 * DAY_MS },
  development: { label: 'dev', entitlement: 8, lifetime_ms: 365 * DAY_MS },
  lobby: { label: 'lobby', entitlement: 4, lifetime_ms: 365 * DAY_MS },
  player: { label: 'player', entitlement: 5, lifetime_ms: 90 * DAY_MS },
  development_player: { label: 'dev_player', entitlement: 9, lifetime_ms: 365 * DAY_MS },
  cloud: { label: 'cloud', entitlement: 7, lifetime_ms: 365 * DAY_MS },
  service: { label: 'env_svc', entitlement: 19, lifetime_ms: 15 * 365 * DAY_MS },
  device_link: { label: 'device', entitlement: 14, lifetime_ms: 60 * MINUTE_MS },
  // Muster's own.
  share: { label: 'share', entitlement: 64, lifetime_ms: 30 * DAY_MS },
  metrics: { label: 'metrics', entitlement: 65, lifetime_ms: 365 * DAY_MS },
};

const partsOf = (token: string): [label: string, header: string, claims: string, signature: string] => {
  const [label = '', header = '', claims = '', signature = '', ...more] = token.split('.');
  expect(more).toEqual([]);
  return [label, header, claims, signature];
};

describe.each(CALLER_KINDS)('a token of the kind %s', (kind) => {
  const { label, entitlement, lifetime_ms } = FORMS[kind];

  test('is valid until it expires, and no longer', async () => {
    const { tokens, now } = await makeTokenMaker();
    const caller = makeCaller(kind);
    const token = await tokens.issue(caller);
    now.ms += lifetime_ms + LEEWAY_MS;
    expect(await tokens.verify(token)).toMatchObject(caller);
    now.ms += 1;
    const { code, status } = await rejectionOf(ServiceError, tokens.verify(token));
    expect({ code, status }).toEqual({ code: 'CLAIMS_ENTITLEMENT_EXPIRED', status: 401 });
  });

  test("has the reference API's form: a label, and a JWS with a protobuf message", async () => {
    const { tokens, key, now } = await makeTokenMaker();
    const caller = makeCaller(kind);
    const [front, header, claims, signature] = partsOf(await tokens.issue(caller));
    expect(front).toBe(label);
    const alg = kind === 'player' ? 'HS256' : 'EdDSA';
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ typ: 'JWT', alg });
    const signed = `${header}.${claims}`;
    if (kind === 'player') {
      expect(signature).toBe(createHmac('sha256', playerKeyOf(key)).update(signed).digest('base64url'));
    } else {
      const public_key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: key.x } });
      expect(verify(null, Buffer.from(signed), public_key, Buffer.from(signature, 'base64url'))).toBe(true);
    }

    const message = readMessage(Buffer.from(claims, 'base64url'));
    expect(message.numbers()).toEqual([1, 2, 3, 4]);
    expect(message.integer(1)).toBe(now.ms + lifetime_ms);
    expect(message.integer(2)).toBe(now.ms);
    expect(message.message(4).numbers()).toEqual([entitlement]);
    expect(decodeClaims(Buffer.from(claims, 'base64url'))?.caller).toEqual(caller);
  });

  test('may have a name in its label, and is valid without a label', async () => {
    const { tokens } = await makeTokenMaker();
    const caller = makeCaller(kind);
    const token = await tokens.issue(caller, { suffix: 'my-game-1' });
    const [front, ...jws] = partsOf(token);
    expect(front).toBe(`${label}_my_game_1`);
    expect(await tokens.verify(token)).toMatchObject(caller);
    expect(await tokens.verify(jws.join('.'))).toMatchObject(caller);
  });
});

test('tokens: one may have a lifetime of its own; two tokens of one caller differ', async () => {
  const { tokens, now } = await makeTokenMaker();
  const caller = makeCaller('identity');
  const [token, other] = await Promise.all([tokens.issue(caller, { lifetime_ms: 1_000 }), tokens.issue(caller)]);
  expect(token).not.toBe(other);
  now.ms += 1_000 + LEEWAY_MS + 1;
  expect((await rejectionOf(ServiceError, tokens.verify(token))).code).toBe('CLAIMS_ENTITLEMENT_EXPIRED');
  expect(await tokens.verify(other)).toMatchObject(caller);
});

test('recall: returns a verified token with any label of its kind, and with no other', async () => {
  const { tokens } = await makeTokenMaker();
  const caller = makeCaller('public');
  const [label, ...jws] = partsOf(await tokens.issue(caller));
  await tokens.verify([label, ...jws].join('.'));
  for (const other of [[], ['pub'], ['pub_a'], ['pub_b']]) {
    expect(tokens.recall([...other, ...jws].join('.'))).toMatchObject(caller);
  }
  for (const other of [[''], ['usr'], ['public'], ['pub_a', 'b'], ['x', 'pub']]) {
    const token = [...other, ...jws].join('.');
    expect(tokens.recall(token)).toBeUndefined();
    expect((await rejectionOf(ServiceError, tokens.verify(token))).code).toBe('TOKEN_INVALID');
  }
});

test('tokens: a clock that is set back expires nothing', async () => {
  const { tokens, now } = await makeTokenMaker();
  const caller = makeCaller('device_link');
  const token = await tokens.issue(caller);
  now.ms -= 365 * DAY_MS;
  expect(await tokens.verify(token)).toMatchObject(caller);
});

describe('a token in a body', () => {
  test('is refused with a reason', async () => {
    const { tokens, now } = await makeTokenMaker();
    const { tokens: others } = await makeTokenMaker();
    const reasonOf = async (token: string) => {
      const { code, status, message } = await rejectionOf(ServiceError, tokens.verifyKind(token, ['player']));
      expect({ code, status }).toEqual({ code: 'TOKEN_ERROR', status: 400 });
      return message;
    };
    const messageOf = (reason: string) => `A token in the request is invalid: ${reason}. Get a new one.`;
    const token = await tokens.issue(makeCaller('player'));
    expect(await reasonOf('')).toBe(messageOf('it was not signed by this service'));
    expect(await reasonOf(await others.issue(makeCaller('player')))).toBe(
      messageOf('it was not signed by this service'),
    );
    expect(await reasonOf(await tokens.issue(makeCaller('lobby')))).toBe(
      messageOf('it is of the kind lobby, but must be of the kind player'),
    );
    now.ms += 91 * DAY_MS;
    expect(await reasonOf(token)).toBe(messageOf('it has expired'));
  });

  test('is accepted if it is of an allowed kind', async () => {
    const { tokens } = await makeTokenMaker();
    const caller = makeCaller('player');
    expect(await tokens.verifyKind(await tokens.issue(caller), ['development_player', 'player'])).toMatchObject(caller);
  });
});
