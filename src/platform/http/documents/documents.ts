import type { AnyElysia } from 'elysia';
import swaggerStyle from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' };
import swaggerScript from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' };
import projectSchema from '../../../../docs/muster.schema.json' with { type: 'json' };
import { readClient } from '../../client-file.ts';
import { CATALOGUE } from '../../error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../../errors.ts';
import { describeSocket } from '../../socket/asyncapi.ts';
import { htmlPage } from '../answers.ts';
import { type Route, route } from '../route.ts';
import type { Examples } from './examples.ts';
import { describeApi } from './openapi.ts';

interface DocumentsDependencies {
  describe: () => { app: AnyElysia; routes: Route[] };
  version: string;
  examples: Examples;
  public_url: string;
}

/** Routes that describe the service: the API document, a page to read and try it, and the errors. They work offline. */
export function documentRoutes({ describe, version, examples, public_url }: DocumentsDependencies): Route[] {
  let document: ReturnType<typeof describeApi> | undefined;
  const page = { allow: 'anyone', is_page: true } as const;
  return [
    route('GET', '/openapi.json', { ...page, summary: 'Returns the OpenAPI 3.1 document of the API.' }, async () => {
      const { app, routes } = describe();
      document ??= describeApi(app, routes, version, examples);
      return document;
    }),
    route(
      'GET',
      '/asyncapi.json',
      { ...page, summary: 'Returns the AsyncAPI 3.0 document of the WebSocket channel.' },
      async () => describeSocket(public_url, version),
    ),
    route('GET', '/swagger', { ...page, summary: 'Returns a page to read about the API and to try it.' }, async () =>
      htmlPage(SWAGGER_PAGE),
    ),
    route('GET', '/swagger/ui.js', { ...page, summary: 'Returns the script of the page /swagger.' }, async () =>
      fileResponse(Bun.file(swaggerScript), 'text/javascript'),
    ),
    route('GET', '/swagger/ui.css', { ...page, summary: 'Returns the style sheet of the page /swagger.' }, async () =>
      fileResponse(Bun.file(swaggerStyle), 'text/css'),
    ),
    route('GET', '/client.js', { ...page, summary: 'Returns the watch client for pages and programs.' }, async () =>
      fileResponse(await readClient(), 'text/javascript'),
    ),
    route(
      'GET',
      '/muster.schema.json',
      { ...page, summary: 'Returns the JSON schema of muster.yaml, for editors.' },
      async () => fileResponse(JSON.stringify(projectSchema), 'application/json'),
    ),
    route('GET', '/docs/errors', { ...page, summary: 'Returns the page that explains all errors.' }, async () =>
      htmlPage(ERRORS_PAGE),
    ),
  ];
}

const SWAGGER_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Muster API</title><link rel="stylesheet" href="/swagger/ui.css"></head>
<body><div id="ui"></div><script src="/swagger/ui.js"></script>
<script>SwaggerUIBundle({ url: '/openapi.json', dom_id: '#ui', deepLinking: true, docExpansion: 'none' });</script></body></html>`;

const ERRORS_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Muster errors</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}h2{font-size:1rem;margin-bottom:0}:target{background:#fff3bf}</style>
</head><body><h1>Errors</h1>
<p>Every error has a body with <code>code</code>, <code>message</code>, <code>ray_id</code>, <code>documentation</code> and sometimes <code>metadata</code>.</p>
${Object.entries(CATALOGUE)
  .map(([code, { status, message }]) => {
    const anchor = documentationAnchor(code as ErrorCode);
    return `<h2 id="${anchor}"><code>${code}</code> (${status})</h2><p>${Bun.escapeHTML(message)}</p>`;
  })
  .join('\n')}
</body></html>`;

function fileResponse(content: Bun.BunFile | string, type: string): Response {
  return new Response(content, {
    headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'max-age=3600' },
  });
}
