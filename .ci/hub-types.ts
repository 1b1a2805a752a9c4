import openapiTypescript, { astToString } from 'openapi-typescript';

/** The file that the hub has its types of the API from. */
export const HUB_TYPES = 'src/hub/data/api-types.d.ts';
const HEAD = '// Generated from the API document by "bun .ci/documents.ts": the paths that the hub names.\n';

interface Operation {
  operationId: string;
  parameters?: unknown;
  requestBody?: unknown;
  responses: Record<string, { content: object }>;
}

interface Document {
  openapi: string;
  info: object;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

/** Returns the types of those paths of the API that the hub's sources name, without their errors. */
export async function writeHubTypes(api_document: string): Promise<string> {
  const { openapi, info, paths, components }: Document = JSON.parse(api_document);
  const text = await readSources();
  const named = Object.fromEntries(
    Object.entries(paths)
      .filter(([path]) => text.includes(`'${path}'`))
      .map(([path, operations]) => [path, mapValues(operations, withoutErrors)]),
  );
  const schemas = schemasOf(named, components.schemas);
  const source = JSON.stringify({ openapi, info, paths: named, components: { schemas } });
  return format(HEAD + astToString(await openapiTypescript(source)));
}

async function readSources(): Promise<string> {
  const names = [...new Bun.Glob('src/hub/**/*.{ts,tsx}').scanSync('.')].filter((path) => path !== HUB_TYPES);
  return (await Promise.all(names.map((name) => Bun.file(name).text()))).join('\n');
}

function withoutErrors({ operationId, parameters, requestBody, responses }: Operation) {
  const { 200: success } = responses;
  return { operationId, parameters, requestBody, responses: { 200: { description: '', content: success?.content } } };
}

/** Returns the schemas to which a part of a document refers, and those to which these refer. */
function schemasOf(part: object, all: Record<string, object>): Record<string, object> {
  const found: Record<string, object> = {};
  const follow = (value: object): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const schema = all[name];
      if (found[name] || !schema) continue;
      found[name] = schema;
      follow(schema);
    }
  };
  follow(part);
  return found;
}

function mapValues<From, To>(values: Record<string, From>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** Formats a source as the repository's formatter does. */
async function format(source: string): Promise<string> {
  const command = ['node_modules/.bin/biome', 'format', `--stdin-file-path=${HUB_TYPES}`];
  return await new Response(Bun.spawn(command, { stdin: new Blob([source]), stdout: 'pipe' }).stdout).text();
}
