import { afterAll, setDefaultTimeout } from 'bun:test';
import { stopTestServer } from './database/database.ts';
import { startKeeper } from './keeper.ts';

// Longer than any wait for a condition, so that its error names the condition.
setDefaultTimeout(300_000);

startKeeper();

// Once for the whole run: closes what the tests share after the last one. A worker of `bun test --parallel` would do so
// after each file; its keeper cleans up when the worker has ended.
if (process.env.BUN_TEST_WORKER_ID === undefined) afterAll(stopTestServer, 300_000);
