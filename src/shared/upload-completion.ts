/** How long a service may take to check an upload: it unpacks a large build, after those of other games. */
const WITHIN_MS = 15 * 60_000;
const PAUSE_MS = 1_000;

interface Completion {
  /** Asks the service to complete the upload, which may be repeated without harm. */
  send(): Promise<unknown>;
  /** Returns whether the service may complete the upload although this request failed. */
  isPending(error: unknown): boolean;
  pause(duration_ms: number): Promise<void>;
}

/**
 * Completes an upload. The check of a large build goes on after its request has ended without an answer, so the request is
 * repeated until the upload is complete. Throws the error of the last request.
 */
export async function untilComplete({ send, isPending, pause }: Completion): Promise<void> {
  const deadline = performance.now() + WITHIN_MS;
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!isPending(error) || performance.now() > deadline) throw error;
    }
    await pause(PAUSE_MS);
  }
}
