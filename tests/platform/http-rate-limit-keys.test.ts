import { describe, expect, test } from 'bun:test';
import { keyOf } from '../../src/platform/http/rate-limits.ts';
import type { Caller } from '../../src/platform/tokens/caller.ts';

const [game_id, namespace_id, identity_id] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];

const keyAt = (caller: Caller | undefined, address: string) => keyOf(caller, { address });

describe('the rate-limit key', () => {
  const SHARED: [string, Caller | undefined][] = [
    ['a public token', { kind: 'public', namespace_id }],
    ['a development token', { kind: 'development', namespace_id, hostname: 'laptop', ports: [] }],
    ['no token', undefined],
  ];
  test.each(SHARED)('of %s differs by address, because many players use the same one', (_, caller) => {
    expect(keyAt(caller, '203.0.113.1')).not.toBe(keyAt(caller, '203.0.113.2'));
    expect(keyAt(caller, '203.0.113.1')).toBe(keyAt(caller, '203.0.113.1'));
  });

  const OWN: [string, Caller][] = [
    ['an identity token', { kind: 'identity', identity_id }],
    ['a cloud token', { kind: 'cloud', game_id }],
  ];
  test.each(OWN)('of %s is the same at every address', (_, caller) => {
    expect(keyAt(caller, '203.0.113.1')).toBe(keyAt(caller, '203.0.113.2'));
  });
});
