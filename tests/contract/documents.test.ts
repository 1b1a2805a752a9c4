import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { writeApi, writeErrors } from '../../.ci/documents.ts';
import { findAsset } from '../../src/platform/assets.ts';
import { openTestService, type TestService } from '../support/service.ts';

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());

const read = (path: string) => Bun.file(findAsset(path)).text();

describe('what the code says of itself is what is written down', () => {
  test('docs/openapi.json is what the service serves (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/openapi.json')).toBe(await writeApi(opened.api.base_url));
  });

  test('docs/errors.md has every error (bun .ci/documents.ts writes it)', async () => {
    expect(await read('docs/errors.md')).toBe(writeErrors());
  });

  test('the API document names every operation once, with its answers', async () => {
    const { paths } = await opened.api.ok('GET', '/openapi.json');
    const operations = Object.values(paths).flatMap((path) => Object.values(path as Record<string, Operation>));
    expect(operations.length).toBeGreaterThan(50);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { summary, responses } of operations) {
      expect(summary).toEndWith('.');
      expect(responses['200']).toBeDefined();
      expect(responses['500']).toBeDefined();
    }
  });

  test('the API document is one: a validator of OpenAPI 3.1 finds nothing wrong with it', async () => {
    const document = await opened.api.ok('GET', '/openapi.json');
    const { valid, errors } = await new Validator().validate(document);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(document.openapi).toStartWith('3.1');
  });

  test('the pages to read work without anything from elsewhere', async () => {
    for (const path of ['/swagger', '/docs/errors', '/swagger/ui.js', '/swagger/ui.css']) {
      const { status, body } = await opened.api.get(path);
      expect(status).toBe(200);
      expect(String(body).length).toBeGreaterThan(200);
    }
    const { body } = await opened.api.get('/swagger');
    expect(body).not.toMatch(/(src|href)="https?:/);
  });

  test('an error names the place of its explanation', async () => {
    const { body } = await opened.api.get('/nothing/here');
    const [page, anchor] = body.documentation.split('#');
    const { body: errors } = await opened.api.get(page);
    expect(errors).toContain(`id="${anchor}"`);
  });
});

interface Operation {
  operationId: string;
  summary: string;
  responses: Record<string, unknown>;
}
