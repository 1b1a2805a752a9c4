import { statSync } from 'node:fs';
import { EXIT, Failure } from '../../terminal/failure.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import { digestArchive, writeArchive } from './archive.ts';
import { listFiles } from './files.ts';
import { packImage } from './image.ts';
import type { Build } from './project-file.ts';
import { readScript } from './script.ts';

/** A server as it is uploaded. */
export interface ServerPackage {
  kind: 'javascript' | 'archive' | 'docker_image';
  file_name: string;
  /** Returns the bytes to upload. Those of a directory or an image are in a file, which is deleted on disposal. */
  open(): Promise<PackageContent>;
  /** Files that were left out because they usually hold secrets. */
  secrets: string[];
  /** Links that lead nowhere, and names that cannot be read, which were left out. */
  unreadable: string[];
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
 * the packing, and the programs that make an image.
 */
export async function packServer(build: Build, stopping?: AbortSignal): Promise<ServerPackage> {
  const { path, command, dockerfile, isolation } = build;
  if (dockerfile !== undefined) return await packImage({ ...build, dockerfile }, stopping);
  if (statSync(path).isFile()) {
    const { content, file_name, sources } = await readScript(path);
    return {
      kind: 'javascript',
      file_name,
      sources,
      open: async () => inMemory(content),
      secrets: [],
      unreadable: [],
      command: undefined,
      // The service runs the script by its name: the extension says whether it is TypeScript.
      digest: digestOf(content, [file_name]),
    };
  }
  if (!command) throw new Failure('build.command is missing: name the program of the directory.', EXIT.wrong_use);
  const { files, secrets, unreadable } = listFiles(path);
  const archive = { files, command };
  const how = isolation === 'container' ? { command, isolation } : command;
  const digest = await showWhile('build    reading the files of the server', () => digestArchive(archive, how));
  const open = () => showWhile('build    packing', () => writeArchive(archive, how, { digest, stopping }));
  return {
    kind: 'archive',
    file_name: 'server.tar.zst',
    open,
    secrets,
    unreadable,
    command,
    digest,
    ...(isolation && { isolation }),
  };
}

function inMemory(content: Uint8Array): PackageContent {
  return { blob: new Blob([new Uint8Array(content)]), [Symbol.asyncDispose]: async () => {} };
}

/** Returns a digest of a content and of how it is run. */
function digestOf(content: Uint8Array, how: object): string {
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(how)).update(content).digest('hex');
}
