import { forEachUntilFailure } from '../../shared/at-once.ts';
import { ANSWER_WITHIN_MS } from '../../shared/request-time.ts';
import { untilComplete } from '../../shared/upload-completion.ts';
import { EXIT, Failure } from '../../terminal/failure.ts';
import type { ApiCaller } from '../api-caller.ts';
import { pause } from '../pause.ts';
import { openProgressBar } from '../progress-bar.ts';
import type { Session } from '../session.ts';

/** A part of a file, and where to put it. */
export interface UploadPart {
  path: string;
  url: string;
  byte_offset: number;
  content_length: number;
}

interface Transfer {
  /** Shown in front of the progress bar. */
  label: string;
  /** The parts that are missing. */
  parts: UploadPart[];
  /** Of all parts, also those that have arrived. */
  total_bytes: number;
  contentOf: (path: string) => Blob;
  /** Returns whether the upload is complete, which another deploy of the same files may have done. */
  isComplete: () => Promise<boolean>;
}

const PARTS_AT_ONCE = 4;

/** Returns the parts of an upload that have not arrived. */
export async function findMissing(
  api: ApiCaller,
  { game_id, upload_id }: { game_id: string; upload_id: string },
): Promise<UploadPart[]> {
  const path = `/cloud/games/${game_id}/uploads/${upload_id}/requests`;
  return (await api.get<{ presigned_requests: UploadPart[] }>(path)).presigned_requests;
}

/** Sends parts, several at a time. Ends early if another deploy of the same files completes the upload meanwhile. */
export async function sendParts({ api }: Session, transfer: Transfer): Promise<void> {
  const { label, parts, total_bytes, contentOf, isComplete } = transfer;
  const missing_bytes = parts.reduce((sum, { content_length }) => sum + content_length, 0);
  using bar = openProgressBar({ label, done_bytes: total_bytes - missing_bytes, total_bytes });
  try {
    await forEachUntilFailure(parts, PARTS_AT_ONCE, async ({ path, url, byte_offset, content_length }) => {
      // A part that is sent again must be the same, so a file is read once.
      const body = await contentOf(path)
        .slice(byte_offset, byte_offset + content_length)
        .bytes();
      if (body.length !== content_length) throw new Failure(`${path} changed while it was sent.`);
      await api.sendPart(url, body).catch(async (error: unknown) => {
        const is_refused = error instanceof Failure && error.refusal?.code === 'UPLOAD_INVALID';
        // Otherwise, the file no longer has the digest that was announced.
        throw !is_refused || (await isComplete()) ? error : new Failure(`${path} changed while it was sent.`);
      });
      bar.add(content_length);
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // Another deploy of the same files completes the upload, or has completed it.
    if (['UPLOAD_BUSY', 'UPLOAD_INVALID'].includes(error.refusal?.code ?? '')) return;
    const advice = 'Run the command again: it sends only what is missing.';
    throw new Failure(`The upload was interrupted. ${error.message} ${advice}`, error.exit_code, error.refusal);
  }
}

/** Completes the upload or build of a path. Waits while the service checks it, also for another deploy of the same files. */
export async function completeUpload({ api }: Session, path: string): Promise<void> {
  const call = { is_repeatable: true, timeout_ms: ANSWER_WITHIN_MS, signal: api.stopping };
  try {
    await untilComplete({
      send: () => api.call('POST', `${path}/complete`, call),
      isPending,
      pause: (duration_ms) => pause(duration_ms, api.stopping),
    });
  } catch (error) {
    throw isPending(error) ? new Failure(error.message, EXIT.timed_out, error.refusal) : error;
  }
}

/** Returns whether a completion failed while the service may still be checking the upload. */
function isPending(error: unknown): error is Failure {
  return error instanceof Failure && (error.exit_code === EXIT.timed_out || error.refusal?.code === 'UPLOAD_BUSY');
}
