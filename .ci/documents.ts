// Writes the documents that are made from the code: docs/openapi.json and docs/errors.md. `bun .ci/documents.ts`
// after a change of the route table or of the error catalogue; a test says when it was forgotten.
import { CATALOGUE } from '../src/platform/error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../src/platform/errors.ts';
import { stopTestServer } from '../tests/support/database.ts';
import { openTestService } from '../tests/support/service.ts';

/** The API document as a service serves it, as text. */
export async function writeApi(base_url: string): Promise<string> {
  const response = await fetch(`${base_url}/openapi.json`);
  return `${JSON.stringify(await response.json(), null, 2)}\n`;
}

/** The page of all errors. */
export function writeErrors(): string {
  const entries = Object.entries(CATALOGUE).map(([code, { status, message }]) => {
    const anchor = documentationAnchor(code as ErrorCode);
    return `<a id="${anchor}"></a>\n\n## ${code}\n\nStatus ${status}. ${message.replaceAll('<', '&lt;')}\n`;
  });
  return `${INTRODUCTION}\n${entries.join('\n')}`;
}

const INTRODUCTION = `# Errors

Made from \`src/platform/errors.ts\` by \`bun .ci/documents.ts\`; a running service shows the same at \`/docs/errors\`.

Every error has a body with \`code\`, \`message\`, \`ray_id\` (also in the header \`rvt-ray-id\`), \`documentation\` and,
where there is more to say to a program, \`metadata\`. What stands in braces is filled in. Answers with status 503
carry \`Retry-After\`, in seconds.
`;

if (import.meta.main) {
  await using opened = await openTestService();
  await Bun.write('docs/openapi.json', await writeApi(opened.api.base_url));
  await Bun.write('docs/errors.md', writeErrors());
  await opened[Symbol.asyncDispose]();
  await stopTestServer();
}
