import type { Events } from '../platform/events.ts';

/**
 * Closes the service. Logs it and returns false if that fails or takes too long; then the next start cleans up as after a
 * crash.
 */
export async function closeInTime(
  service: AsyncDisposable,
  { within_ms, events }: { within_ms: number; events: Events },
): Promise<boolean> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => late.resolve('late'), within_ms);
  const closing = service[Symbol.asyncDispose]().then(() => 'closed' as const);
  try {
    const outcome = await Promise.race([closing, late.promise]);
    if (outcome === 'late') events.emit({ event: 'service_stopped_late', after_ms: within_ms });
    return outcome === 'closed';
  } catch (cause) {
    events.emit({ event: 'unexpected_failure', cause });
    return false;
  } finally {
    clearTimeout(timer);
  }
}
