import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';

/** What is signed: which request it is, when it was sent, and what it says. */
export interface Signed {
  /** Of this request and no other: by it a receiver knows one that comes twice. */
  id: string;
  now: Date;
  body: string;
}

/**
 * The headers by which a receiver knows that a request is ours and of now: `webhook-id`, `webhook-timestamp` in seconds,
 * `webhook-signature` (HMAC-SHA256 of `id.timestamp.body` in base64), as Standard Webhooks 1.0.0 has them.
 */
export function sign({ id, now, body }: Signed, secret: string): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
