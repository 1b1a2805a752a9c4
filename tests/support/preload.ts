import { afterAll, setDefaultTimeout } from 'bun:test';
import { stopTestServer } from './database.ts';
import { startKeeper } from './keeper.ts';

// Longer than any wait for a condition, so that it is said what was waited for.
setDefaultTimeout(90_000);

startKeeper();

// Once for the whole run: what the tests share is closed when the last one has ended.
afterAll(stopTestServer, 90_000);
