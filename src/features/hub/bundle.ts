import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { findAsset } from '../../platform/assets.ts';
import { assert } from '../../platform/errors.ts';

/** Where the build writes the bundle, and where the executable has it. */
export const HUB_FOLDER = 'dist/hub';
/** The path of the bundle's files, except the page. */
export const FILES_PATH = '/hub-files/';
export const PAGE = 'index.html';
/** The script of the bots, which runs beside the page. */
const WORKER = 'src/hub/bots/worker.ts';
export const WORKER_NAME = /^worker-\w+\.js$/;
const ENCODINGS = { br: compressWithBrotli, gz: gzipSync } as const;

/** The files of the hub by name: the page, its scripts and styles, each also compressed (`.br`, `.gz`). */
export type Bundle = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

let bundle: Promise<Bundle> | undefined;

/** Returns the bundle: that of the executable, or one that the first call builds from the sources. */
export function readBundle(): Promise<Bundle> {
  bundle ??= (Bun.isStandaloneExecutable ? readIncluded() : buildBundle()).catch((error: unknown) => {
    // A developer may correct the sources while the service runs.
    bundle = undefined;
    throw error;
  });
  return bundle;
}

async function readIncluded(): Promise<Bundle> {
  const folder = findAsset(HUB_FOLDER);
  const names = await readdir(folder);
  return new Map(
    await Promise.all(names.map(async (name) => [name, await Bun.file(join(folder, name)).bytes()] as const)),
  );
}

/** Builds the hub from its sources. Names of files have hashes of their content, so browsers may keep them for good. */
export async function buildBundle(): Promise<Bundle> {
  const worker = await build(WORKER, { naming: '[name]-[hash].[ext]' });
  const [script, ...chunks] = worker;
  assert(script && chunks.length === 0, 'the worker is one file, whose address the page has');
  const page = await build('src/hub/index.html', {
    naming: { entry: '[name].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    define: { BOTS_WORKER: JSON.stringify(FILES_PATH + nameOf(script)) },
  });
  const outputs = [...page, ...worker];
  const files = await Promise.all(
    outputs.map(async (output) => {
      return [nameOf(output), new Uint8Array(await output.arrayBuffer())] as const;
    }),
  );
  const compressed = files.flatMap(([name, content]) =>
    Object.entries(ENCODINGS).map(([ending, compress]) => [`${name}.${ending}`, bytesOf(compress(content))] as const),
  );
  return new Map([...files, ...compressed]);
}

async function build(entry: string, options: Partial<Bun.BuildConfig>): Promise<Bun.BuildArtifact[]> {
  const { outputs, success, logs } = await Bun.build({
    entrypoints: [findAsset(entry)],
    target: 'browser',
    format: 'esm',
    minify: true,
    splitting: true,
    publicPath: FILES_PATH,
    ...options,
  } as Bun.BuildConfig);
  assert(success, `the hub can be built: ${logs.join('; ')}`);
  return outputs;
}

function nameOf({ path }: Bun.BuildArtifact): string {
  return path.replace(/^(\.\/|\/)+/, '');
}

function compressWithBrotli(content: Uint8Array): Buffer {
  return brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } });
}

function bytesOf(buffer: Buffer): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}
