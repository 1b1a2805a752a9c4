import { afterAll, beforeAll } from 'bun:test';
import type { Answer } from './api.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { openTestService, type TestService } from './service.ts';

/** On a busy machine the first file's PostgreSQL takes a while. */
const HOOK_TIMEOUT_MS = 90_000;

type SharedService = Omit<TestService, keyof AsyncDisposable | 'service'> & { ledger: Ledger };

/** A service, with a look into its database, for all tests of a file: opened before the first, closed after the last. */
export function shareService(settings: Record<string, string> = {}): SharedService {
  let opened: (TestService & { ledger: Ledger }) | undefined;
  beforeAll(async () => {
    const muster = await openTestService(settings);
    opened = Object.assign(muster, { ledger: openLedger(muster) });
  }, HOOK_TIMEOUT_MS);
  afterAll(async () => {
    await opened?.ledger[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
  }, HOOK_TIMEOUT_MS);
  const get = () => {
    if (!opened) throw new Error('the service is open while tests run, not while they are collected');
    return opened;
  };
  return {
    get api() {
      return get().api;
    },
    get administrator_token() {
      return get().administrator_token;
    },
    get clock() {
      return get().clock;
    },
    get config() {
      return get().config;
    },
    get database_address() {
      return get().database_address;
    },
    get events() {
      return get().events;
    },
    get ledger() {
      return get().ledger;
    },
  };
}

/** What an answer comes to: "200", or its status and code as in "404 GAME_NOT_FOUND". */
export function outcomeOf({ status, body }: Answer): string {
  return status === 200 ? '200' : `${status} ${body.code}`;
}
