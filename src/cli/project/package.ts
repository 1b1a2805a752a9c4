import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { EXIT, Failure } from '../failure.ts';
import { showWhile } from '../progress-line.ts';
import { listFiles, type ProjectFile } from './files.ts';
import { packImage } from './image.ts';
import type { Build } from './project-file.ts';
import { readScript } from './script.ts';

/** A server as it is uploaded. */
export interface ServerPackage {
  kind: 'javascript' | 'archive' | 'docker_image';
  file_name: string;
  /** Returns the bytes to upload. Those of an image are written to a file first, which is deleted on disposal. */
  open(): Promise<PackageContent>;
  /** Files that were left out because they usually hold secrets. */
  secrets: string[];
  /** Of a script: the files that it was made of. */
  sources?: string[];
  command: string[] | undefined;
  isolation?: Build['isolation'];
  /** Equal for equal files, so that nothing is sent twice. */
  digest: string;
}

export interface PackageContent extends AsyncDisposable {
  blob: Blob;
}

/**
 * Packs a server: a script with what it imports, a directory as a compressed tar, a Dockerfile as its image. `stopping` ends
 * the programs that make an image.
 */
export async function packServer(build: Build, stopping?: AbortSignal): Promise<ServerPackage> {
  const { path, command, dockerfile, isolation } = build;
  if (dockerfile !== undefined) return await packImage({ ...build, dockerfile }, stopping);
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts) throw new Failure(`There is no ${path}: correct build.path in muster.yaml.`, EXIT.not_found);
  if (facts.isFile()) {
    if (isolation)
      throw new Failure('build.path is one script, which has no isolation: name a directory.', EXIT.wrong_use);
    const { content, file_name, sources } = await readScript(path);
    return {
      kind: 'javascript',
      file_name,
      sources,
      open: async () => inMemory(content),
      secrets: [],
      command: undefined,
      // The service runs the script by its name: the extension says whether it is TypeScript.
      digest: digestOf(content, [file_name]),
    };
  }
  if (!command)
    throw new Failure('build.path is a directory: say in build.command which program of it to run.', EXIT.wrong_use);
  const { files, secrets } = listFiles(path);
  if (files.length === 0) throw new Failure(`${path} has no files: correct build.path in muster.yaml.`, EXIT.wrong_use);
  const { digest, content } = await showWhile('build    packing', async () => {
    const tar = await packFiles(files, command);
    const how = isolation === 'container' ? { command, isolation } : command;
    return { digest: digestOf(tar, how), content: await Bun.zstdCompress(tar) };
  });
  const open = async () => inMemory(content);
  return {
    kind: 'archive',
    file_name: 'server.tar.zst',
    open,
    secrets,
    command,
    digest,
    ...(isolation && { isolation }),
  };
}

async function packFiles(files: ProjectFile[], command: string[]): Promise<Uint8Array> {
  const tar = pack();
  const packed = buffer(tar);
  for (const { path: name, file, is_executable } of files) {
    // A program that was exported on Windows is not executable.
    const runs = is_executable || name === command[0]?.replace(/^\.\//, '');
    tar.entry({ name, mode: runs ? 0o755 : 0o644, mtime: new Date(0) }, await readFile(file));
  }
  tar.finalize();
  return await packed;
}

function inMemory(content: Uint8Array): PackageContent {
  return { blob: new Blob([new Uint8Array(content)]), [Symbol.asyncDispose]: async () => {} };
}

/** Returns a digest of a content and of how it is run. */
function digestOf(content: Uint8Array, how: object): string {
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(how)).update(content).digest('hex');
}
