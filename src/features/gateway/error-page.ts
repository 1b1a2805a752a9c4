import type { ServiceError } from '../../platform/errors.ts';
import { htmlPage, setErrorHeaders } from '../../platform/http/answers.ts';

const STYLE = 'body{font:1.1rem/1.5 system-ui;max-width:36rem;margin:15vh auto;padding:0 1rem}code{color:#888}';

/** Returns an error of the gateway as a small page, for a player's browser. */
export function toErrorPage(error: ServiceError): Response {
  const { code, message, status } = error;
  const page = htmlPage(
    `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status}</title><style>${STYLE}</style><p>${Bun.escapeHTML(message)}</p><code>${code}</code>`,
  );
  const headers = new Headers(page.headers);
  setErrorHeaders(headers, error);
  return new Response(page.body, { status, headers });
}
