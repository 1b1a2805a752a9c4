import { afterAll, beforeAll } from 'bun:test';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import type { Answer } from './api.ts';
import { type Inspector, openInspector } from './inspector.ts';
import { openTestService, type TestService } from './service.ts';

/** On a busy machine the first file's PostgreSQL takes a while. */
const HOOK_TIMEOUT_MS = 300_000;
const CONNECTIONS_MAX = 4;

/** Ways to look into the database of the service. */
interface Insights {
  inspector: Inspector;
  /** Connections of the tests' own to its database. */
  database: Database;
}
export type SharedService = Omit<TestService, keyof AsyncDisposable> & Insights;

/**
 * A service, with a look into its database, for all tests of a file: opened before the first, closed after the last.
 */
export function shareService(settings: Record<string, string> = {}): SharedService {
  let opened: (TestService & Insights) | undefined;
  beforeAll(async () => {
    const muster = await openTestService(settings);
    const database = openDatabase(muster.database_address, CONNECTIONS_MAX);
    opened = Object.assign(muster, { inspector: openInspector(muster), database });
  }, HOOK_TIMEOUT_MS);
  afterAll(async () => {
    await opened?.inspector[Symbol.asyncDispose]();
    await opened?.database[Symbol.asyncDispose]();
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
    get database() {
      return get().database;
    },
    get database_address() {
      return get().database_address;
    },
    get events() {
      return get().events;
    },
    get inspector() {
      return get().inspector;
    },
    get service() {
      return get().service;
    },
  };
}

/** Returns the outcome of an answer: "200", or status and code as in "404 GAME_NOT_FOUND". */
export function outcomeOf({ status, body }: Answer): string {
  return status === 200 ? '200' : `${status} ${body.code}`;
}

/** Returns how many answers had each outcome. */
export function countOutcomes(answers: Answer[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(answers, outcomeOf)].map(([outcome, all]) => [outcome, all.length]));
}
