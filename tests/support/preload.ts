import { afterAll } from 'bun:test';
import { stopTestServer } from './database.ts';

// Once for the whole run: what the tests share is closed when the last one has ended.
afterAll(stopTestServer);
