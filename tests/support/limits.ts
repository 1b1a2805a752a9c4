import { IS_FULL_LENGTH } from './full-length.ts';

/**
 * The limit of a test and of a hook, which only a test that hangs reaches. At full length browsers, containers and a
 * Kubernetes run beside it, and a slow machine takes several times as long.
 */
export const TEST_LIMIT_MS = IS_FULL_LENGTH ? 300_000 : 90_000;

/** The limit of a test that repeats something many times or starts whole programs. */
export const LONG_TEST_LIMIT_MS = 20 * 60_000;
