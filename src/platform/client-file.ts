import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findAsset } from './assets.ts';

let built: Promise<string> | undefined;

/**
 * Returns the client (src/client) as one file of JavaScript, a module for browsers, Bun and Node. The first call builds it
 * from its sources, which the executable includes: a build in memory needs no other files.
 */
export function readClient(): Promise<string> {
  built ??= buildClient();
  return built;
}

async function buildClient(): Promise<string> {
  const folder = findAsset('src/client');
  const names = await readdir(folder);
  const sources = await Promise.all(names.map((name) => Bun.file(join(folder, name)).text()));
  const result = await Bun.build({
    entrypoints: ['/client/client.ts'],
    files: Object.fromEntries(names.map((name, place) => [`/client/${name}`, sources[place] ?? ''])),
    root: '/',
    target: 'browser',
    format: 'esm',
    banner: '// The client of Muster: import { connect }. docs/watch.md says how to use it.',
  });
  return (await Promise.all(result.outputs.map((output) => output.text()))).join('');
}
