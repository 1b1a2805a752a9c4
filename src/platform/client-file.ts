import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findAsset } from './assets.ts';

let built: Promise<string> | undefined;

/**
 * Returns the client (src/client) as one JavaScript module for browsers, Bun and Node. The first call builds it in memory
 * from its sources, which the executable includes.
 */
export function readClient(): Promise<string> {
  if (built) return built;
  const building = buildClient();
  built = building;
  // The next call tries again.
  building.catch(() => {
    built = undefined;
  });
  return building;
}

async function buildClient(): Promise<string> {
  const folder = findAsset('src/client');
  const names = await readdir(folder);
  const sources = await Promise.all(names.map((name) => Bun.file(join(folder, name)).text()));
  const result = await Bun.build({
    entrypoints: ['/client/client.ts'],
    files: Object.fromEntries(names.map((name, index) => [`/client/${name}`, sources[index] ?? ''])),
    root: '/',
    target: 'browser',
    format: 'esm',
    banner: '// The client of Muster: import { connect }. See docs/watch.md.',
  });
  return (await Promise.all(result.outputs.map((output) => output.text()))).join('');
}
