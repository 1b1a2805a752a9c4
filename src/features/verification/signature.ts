import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';

/** A request to sign: its id, time and body. */
export interface Signed {
  /** Unique to this request, so that a receiver can detect repetitions. */
  id: string;
  now: Date;
  body: string;
}

/**
 * Returns the headers by which a receiver verifies that a request is authentic and recent: `webhook-id`,
 * `webhook-timestamp` in seconds, and `webhook-signature` (HMAC-SHA256 of `id.timestamp.body` in base64), as in
 * Standard Webhooks 1.0.0.
 */
export function sign({ id, now, body }: Signed, secret: string): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
