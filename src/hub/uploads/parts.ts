import { forEachUntilFailure } from '../../shared/at-once.ts';
import type { Answer } from '../data/api.ts';

/** A part of a file, and where to put it. */
export type Part = Answer<'/cloud/games/{game_id}/uploads/{upload_id}/requests', 'get'>['presigned_requests'][number];

const PARTS_AT_ONCE = 4;
const ATTEMPTS_MAX = 5;
const PAUSE_FIRST_MS = 500;
/** How long a part may take: with four at once, enough for a line of 300 kbit/s. */
const PART_WITHIN_MS = 15 * 60_000;
/** Errors that go away by themselves. */
const PASSING = [408, 429, 500, 502, 503, 504];

interface Sending {
  content: Blob;
  parts: Part[];
  /** Called with the bytes of each part that has arrived. */
  onSent(bytes: number): void;
  signal: AbortSignal;
}

/** Sends parts of a file, several at a time, and each again if it fails for a moment. Throws an Error. */
export async function sendParts({ content, parts, onSent, signal }: Sending): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  try {
    await forEachUntilFailure(parts, PARTS_AT_ONCE, async ({ url, byte_offset, content_length }) => {
      await sendPart(url, content.slice(byte_offset, byte_offset + content_length), either);
      onSent(content_length);
    });
  } catch (error) {
    failed.abort();
    throw error;
  }
}

async function sendPart(url: string, content: Blob, signal: AbortSignal): Promise<void> {
  // The page may be open by another name of the service than its public one.
  const { pathname, search } = new URL(url);
  for (let attempt = 1; ; attempt += 1) {
    const last = await tryPart(pathname + search, content, signal);
    if (last === undefined) return;
    if (!last.may_pass || attempt === ATTEMPTS_MAX) throw new Error(last.message);
    await pause(PAUSE_FIRST_MS * 2 ** (attempt - 1), signal);
  }
}

/** Returns undefined if a part has arrived, else why not, and whether it may arrive later. */
async function tryPart(
  path: string,
  body: Blob,
  signal: AbortSignal,
): Promise<{ message: string; may_pass: boolean } | undefined> {
  try {
    const answer = await fetch(path, {
      method: 'PUT',
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(PART_WITHIN_MS)]),
    });
    if (answer.ok) return undefined;
    const { message = `status ${answer.status}` } = await answer.json().catch(() => ({}));
    return { message, may_pass: PASSING.includes(answer.status) };
  } catch (error) {
    signal.throwIfAborted();
    return { message: `The service cannot be reached: ${String(error)}`, may_pass: true };
  }
}

/** Waits for a time. Throws once the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener(
    'abort',
    () => {
      clearTimeout(timer);
      reject(signal.reason);
    },
    { once: true },
  );
  await promise;
}
