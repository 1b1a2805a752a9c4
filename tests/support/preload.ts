import { afterAll, setDefaultTimeout } from 'bun:test';
import { stopTestServer } from './database.ts';
import { startKeeper } from './keeper.ts';

// Longer than any wait for a condition, so that its error names the condition.
setDefaultTimeout(300_000);

startKeeper();

// Once for the whole run: closes what the tests share after the last one.
afterAll(stopTestServer, 300_000);
