import { describe, expect, test } from 'bun:test';
import { nameWatcher } from '../../src/platform/http/counting.ts';
import type { Caller } from '../../src/platform/tokens/caller.ts';
import { readCallerKey } from '../../src/platform/watch/caller-slots.ts';

const [game_id, namespace_id, identity_id] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];

const nameAt = (caller: Caller | undefined, address: string) => readCallerKey(nameWatcher(caller, () => address));

describe('the rate-limit key', () => {
  const SHARED: [string, Caller | undefined][] = [
    ['a public token', { kind: 'public', namespace_id }],
    ['a development token', { kind: 'development', namespace_id, hostname: 'laptop', ports: [] }],
    ['no token', undefined],
  ];
  test.each(SHARED)('of %s differs by address: many players use the same one', (_, caller) => {
    expect(nameAt(caller, '203.0.113.1')).not.toBe(nameAt(caller, '203.0.113.2'));
    expect(nameAt(caller, '203.0.113.1')).toBe(nameAt(caller, '203.0.113.1'));
  });

  const OWN: [string, Caller][] = [
    ['an identity token', { kind: 'identity', identity_id }],
    ['a cloud token', { kind: 'cloud', game_id }],
  ];
  test.each(OWN)('of %s is the same at every address', (_, caller) => {
    expect(nameAt(caller, '203.0.113.1')).toBe(nameAt(caller, '203.0.113.2'));
  });
});
