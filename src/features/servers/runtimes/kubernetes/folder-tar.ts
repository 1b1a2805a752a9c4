import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Header, pack } from 'tar-stream';

/** A header without a name has that of its file. */
export type EntryHeader = Partial<Header> & { type: NonNullable<Header['type']> };

interface FolderTarOptions {
  directory: string;
  /** Returns the header of a file or a folder, by its path on this machine and in the tar; undefined to leave it out. */
  describe(file: string, path: string): Promise<EntryHeader | undefined>;
}

interface Packing extends FolderTarOptions {
  tar: ReturnType<typeof pack>;
}

/** Yields the tar of a folder, in the order of names. */
export async function* packFolder(options: FolderTarOptions): AsyncGenerator<Uint8Array, void> {
  const tar = pack();
  const writing = addFolder({ ...options, tar }, '').then(
    () => tar.finalize(),
    (cause: Error) => tar.destroy(cause),
  );
  try {
    for await (const bytes of tar as AsyncIterable<Uint8Array>) yield bytes;
    await writing;
  } finally {
    // The reader went away.
    tar.destroy();
  }
}

async function addFolder(packing: Packing, inside: string): Promise<void> {
  const { tar, directory, describe } = packing;
  for (const name of (await readdir(join(directory, inside))).toSorted()) {
    const path = inside === '' ? name : `${inside}/${name}`;
    const file = join(directory, path);
    const header = await describe(file, path);
    if (!header) continue;
    if (header.type === 'directory') {
      tar.entry({ ...header, name: `${path}/` });
      await addFolder(packing, path);
      continue;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry = tar.entry({ ...header, name: path }, (error) => (error ? reject(error) : resolve()));
    const content = header.type === 'file' ? createReadStream(file) : undefined;
    content?.on('error', reject).pipe(entry);
    try {
      await promise;
    } finally {
      // Otherwise it stays open if the reader went away.
      content?.destroy();
    }
  }
}
