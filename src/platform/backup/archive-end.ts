/** The name of an archive's last entry, by which a reader knows that the archive is complete and unchanged. */
export const END_ENTRY = 'end.json';

/** The content of the last entry, about all others. */
export interface ArchiveEnd {
  entries: number;
  /** In hexadecimal. */
  sha256: string;
}

/** Counts and digests the entries of an archive, in order. */
export class EntryDigest {
  #entries = 0;
  readonly #hash = new Bun.CryptoHasher('sha256');

  begin(name: string, size: number): void {
    this.#entries += 1;
    this.#hash.update(`${name}\n${size}\n`);
  }

  update(content: Uint8Array): void {
    this.#hash.update(content);
  }

  /** Returns the content of the last entry. Called once. */
  end(): ArchiveEnd {
    return { entries: this.#entries, sha256: this.#hash.digest('hex') };
  }
}
