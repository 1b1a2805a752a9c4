import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { findAsset } from '../../src/platform/assets.ts';

const ROOT = resolve(import.meta.dir, '../..');

/** Every path that the source asks for, as it is written there. */
async function readAsked(): Promise<string[]> {
  const asked: string[] = [];
  for await (const path of new Bun.Glob('src/**/*.ts').scan({ cwd: ROOT })) {
    const text = await Bun.file(join(ROOT, path)).text();
    for (const [, name = ''] of text.matchAll(/findAsset\('([^']+)'\)/g)) asked.push(name);
  }
  return asked;
}

describe('what the program carries along', () => {
  test('is there wherever the source asks for it', async () => {
    const asked = await readAsked();
    expect(asked.length).toBeGreaterThan(2);
    for (const path of asked) {
      const found = findAsset(path);
      expect(isAbsolute(found)).toBe(true);
      expect(existsSync(found)).toBe(true);
    }
  });

  test('is in the list of what the build puts into the executable', async () => {
    const build = await Bun.file(join(ROOT, '.ci/build.ts')).text();
    for (const path of await readAsked()) expect(build).toContain(`'${path.split('/')[0]}`);
  });

  test('is all there is: a path that is not there is a fault of ours', () => {
    expect(() => findAsset('docs/nothing.md')).toThrow('broken promise: docs/nothing.md is included in the executable');
  });
});
