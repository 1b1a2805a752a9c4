import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { CARRIED } from '../../.ci/compile.ts';
import { findAsset } from '../../src/platform/assets.ts';

const ROOT = resolve(import.meta.dir, '../..');

/** Returns every path that the source passes to `findAsset`. */
async function readAssetPaths(): Promise<string[]> {
  const paths: string[] = [];
  for await (const path of new Bun.Glob('src/**/*.ts').scan({ cwd: ROOT })) {
    const text = await Bun.file(join(ROOT, path)).text();
    for (const [, name = ''] of text.matchAll(/findAsset\('([^']+)'\)/g)) paths.push(name);
  }
  return paths;
}

describe('assets', () => {
  test('exist for every path that the source reads', async () => {
    const paths = await readAssetPaths();
    expect(paths.length).toBeGreaterThan(2);
    for (const path of paths) {
      const found = findAsset(path);
      expect(isAbsolute(found)).toBe(true);
      expect(existsSync(found)).toBe(true);
    }
  });

  test('are in the list of files that the build puts into the executable', async () => {
    const isCarried = (path: string) => CARRIED.some((one) => path === one || path.startsWith(`${one}/`));
    expect((await readAssetPaths()).filter((path) => !isCarried(path))).toEqual([]);
  });

  test('a path that does not exist breaks an invariant', () => {
    expect(() => findAsset('docs/nothing.md')).toThrow(
      'broken invariant: docs/nothing.md is included in the executable',
    );
  });
});
