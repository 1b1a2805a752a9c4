import type { ServiceError } from '../../platform/errors.ts';
import { htmlPage } from '../../platform/http/answers.ts';

const STYLE = 'body{font:1.1rem/1.5 system-ui;max-width:36rem;margin:15vh auto;padding:0 1rem}code{color:#888}';

/** Returns an error of the gateway as a small page, for a player's browser. */
export function toErrorPage({ code, message, status, retry_after_ms }: ServiceError): Response {
  const page = htmlPage(
    `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status}</title><style>${STYLE}</style><p>${Bun.escapeHTML(message)}</p><code>${code}</code>`,
  );
  const headers = new Headers(page.headers);
  if (retry_after_ms !== undefined) headers.set('retry-after', String(Math.ceil(retry_after_ms / 1_000)));
  return new Response(page.body, { status, headers });
}
