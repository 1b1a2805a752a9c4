import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findAsset } from './assets.ts';

let made: Promise<string> | undefined;

/**
 * The client (src/client) as one file of JavaScript, a module for browsers, Bun and Node. It is made when it is first asked
 * for, from its sources; the executable carries those, since it can build what it is given in memory.
 */
export function readClient(): Promise<string> {
  made ??= makeClient();
  return made;
}

async function makeClient(): Promise<string> {
  const folder = findAsset('src/client');
  const names = await readdir(folder);
  const sources = await Promise.all(names.map((name) => Bun.file(join(folder, name)).text()));
  const built = await Bun.build({
    entrypoints: ['/client/client.ts'],
    files: Object.fromEntries(names.map((name, place) => [`/client/${name}`, sources[place] ?? ''])),
    root: '/',
    target: 'browser',
    format: 'esm',
    banner: '// The client of Muster: import { connect }. How it is used stands in docs/watch.md.',
  });
  return (await Promise.all(built.outputs.map((output) => output.text()))).join('');
}
