import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import asyncapi from '@asyncapi/specs/schemas/3.0.0-without-$id.json' with { type: 'json' };
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv07 from 'ajv';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { writeApi, writeCommands, writeErrors, writeSchema, writeTokens } from '../../.ci/documents.ts';
import { HUB_TYPES, writeHubTypes } from '../../.ci/hub-types.ts';
import { writeSettings } from '../../.ci/settings-page.ts';
import { findAsset } from '../../src/platform/assets.ts';
import { type Method, nameByPath } from '../../src/platform/http/route.ts';
import { openTestService, type TestService } from '../support/service.ts';

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());

const read = (path: string) => Bun.file(findAsset(path)).text();

describe('the generated documents are current:', () => {
  test('docs/openapi.json is what the service serves (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/openapi.json')).toBe(await writeApi(opened.api.base_url));
  });

  test("the hub's types are those of the API (bun .ci/documents.ts writes them)", async () => {
    expect(await Bun.file(HUB_TYPES).text()).toBe(await writeHubTypes(await Bun.file('docs/openapi.json').text()));
  });

  test('docs/errors.md has every error (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/errors.md')).toBe(writeErrors());
  });

  test('docs/cli.md has every command (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/cli.md')).toBe(writeCommands());
  });

  test('docs/settings.md has every setting (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/settings.md')).toBe(writeSettings());
  });

  test('docs/muster.schema.json has every key of muster.yaml (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/muster.schema.json')).toBe(writeSchema());
  });

  test('docs/tokens.md says which call takes which token (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/tokens.md')).toBe(await writeTokens(opened.api.base_url));
  });

  test('the API document names every operation once, with its answers', async () => {
    const { paths } = await opened.api.ok('GET', '/openapi.json');
    const operations = Object.values(paths).flatMap((path) => Object.values(path as Record<string, Operation>));
    expect(operations.length).toBeGreaterThan(50);
    const names = operations.map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(operations.length);
    expect(names.filter((name) => !VERB_AND_NOUN.test(name))).toEqual([]);
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, { operationId }] of Object.entries(methods as Record<string, Operation>)) {
        expect(operationId).not.toBe(nameByPath(method.toUpperCase() as Method, path));
      }
    }
    for (const { summary, responses } of operations) {
      expect(summary).toEndWith('.');
      expect(responses['200']).toBeDefined();
      expect(responses['500']).toBeDefined();
    }
  });

  test('the API document is valid: an OpenAPI 3.1 validator finds no fault in it', async () => {
    const document = await opened.api.ok('GET', '/openapi.json');
    const { valid, errors } = await new Validator().validate(document);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(document.openapi).toStartWith('3.1');
  });

  test('the API document has examples of every request and answer in their shapes, and of every error', async () => {
    const { paths, components } = await opened.api.ok('GET', '/openapi.json');
    const validator = addFormats(new Ajv({ strict: false }));
    let examples = 0;
    const expectExample = (where: string, { schema, example }: Shown) => {
      validator.validate({ ...schema, components }, example);
      expect({ where, example, errors: validator.errors }).toEqual({ where, example: expect.anything(), errors: null });
      examples += 1;
    };
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(operations as Record<string, Operation>)) {
        const where = `${method} ${path}`;
        for (const parameter of operation.parameters ?? []) expectExample(`${where} ${parameter.name}`, parameter);
        const sent = operation.requestBody?.content?.['application/json'];
        if (sent?.schema.$ref) expectExample(`${where} body`, sent);
        const { '200': answered, ...refused } = operation.responses;
        const answer = answered?.content?.['application/json'];
        if (answer?.schema.$ref) expectExample(`${where} 200`, answer);
        for (const [status, response] of Object.entries(refused)) {
          const name = String(response.$ref).replace('#/components/responses/', '');
          const shared = components.responses[name].content['application/json'];
          expect([where, status, shared.schema]).toEqual([where, status, { $ref: '#/components/schemas/Error' }]);
          for (const code of response.description.split(', ')) {
            expect(shared.examples[code]).toEqual({ $ref: `#/components/examples/${code}` });
            expect(components.examples[code].value.code).toBe(code);
          }
        }
      }
    }
    expect(examples).toBeGreaterThan(300);
  });

  test('the WebSocket channel is described by an AsyncAPI document, and its examples are frames', async () => {
    const document = await opened.api.ok('GET', '/asyncapi.json');
    const validator = addFormats(new Ajv07({ strict: false }));
    validator.validate(asyncapi, document);
    expect(validator.errors).toBeNull();
    const messages = Object.values(document.channels.watch.messages) as Message[];
    expect(messages.map(({ name }) => name).sort()).toEqual(FRAMES);
    for (const { name, payload, examples } of messages) {
      validator.validate(payload, examples[0]?.payload);
      expect({ name, errors: validator.errors }).toEqual({ name, errors: null });
    }
  });

  test('the documentation pages load nothing from elsewhere', async () => {
    // Scripts name addresses that they do not load, such as namespaces of XML.
    const foreign = {
      page: /src="https?:|<link[^>]* href="https?:/,
      styles: /url\(\s*['"]?https?:|@import/,
      script: /^$/,
    };
    for (const [path, kind] of [
      ['/swagger', 'page'],
      ['/docs/errors', 'page'],
      ['/swagger/ui.css', 'styles'],
      ['/swagger/ui.js', 'script'],
    ] as const) {
      const { status, body } = await opened.api.get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(String(body).length).toBeGreaterThan(200);
      expect(String(body)).not.toMatch(foreign[kind]);
    }
  });

  test('every error links to its explanation', async () => {
    const { body } = await opened.api.get('/nothing/here');
    const [page, anchor] = body.documentation.split('#');
    const { body: errors } = await opened.api.get(page);
    expect(errors).toContain(`id="${anchor}"`);
  });
});

/** `findLobby`, or `findLobbyV1` at the specification's address. */
const VERB_AND_NOUN =
  /^(add|ban|cancel|check|complete|connect|consume|create|delete|destroy|disconnect|export|find|get|inspect|join|kick|leave|list|patch|prepare|refresh|remove|request|reserve|resolve|revoke|search|send|set|setUp|transfer|try|unban|update|validate|watch)([A-Z][a-z]+)+(V1)?$/;

interface Shown {
  schema: { $ref?: string };
  example?: unknown;
  examples?: Record<string, unknown>;
}

/** Every frame in docs/watch.md. */
const FRAMES = [
  'authenticate',
  'body',
  'error',
  'ping',
  'pong',
  'ready',
  'subscribe',
  'subscribed',
  'unsubscribe',
  'unsubscribed',
];

interface Message {
  name: string;
  payload: object;
  examples: { payload: unknown }[];
}

interface Operation {
  operationId: string;
  summary: string;
  parameters?: (Shown & { name: string })[];
  requestBody?: { content?: Record<string, Shown> };
  responses: Record<string, { $ref?: string; description: string; content?: Record<string, Shown> }>;
}
