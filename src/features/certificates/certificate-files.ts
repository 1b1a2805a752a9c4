import { readFile, stat } from 'node:fs/promises';
import { StartError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { type Certificate, CertificateError, parseCertificate } from './certificate.ts';

/** A certificate and its key, as absolute paths of files in PEM. */
export interface FilePair {
  certificate_file: string;
  key_file: string;
}

/** Certificates in files that the operator, or a program such as certbot, replaces. */
export class CertificateFiles {
  readonly #pairs: readonly FilePair[];
  readonly #events: Events;
  /** The state of the files when they were read last. */
  #state: string;
  /** Why they could not be read the last time, which is reported once; undefined if they could. */
  #failure: string | undefined;
  certificates: Certificate[];

  private constructor(pairs: readonly FilePair[], events: Events, state: string, certificates: Certificate[]) {
    this.#pairs = pairs;
    this.#events = events;
    this.#state = state;
    this.certificates = certificates;
  }

  /** Reads all files. Throws StartError if one cannot be used. */
  static async open(pairs: readonly FilePair[], events: Events): Promise<CertificateFiles> {
    try {
      const state = await stateOf(pairs);
      return new CertificateFiles(pairs, events, state, await readAll(pairs));
    } catch (cause) {
      if (!(cause instanceof CertificateError)) throw cause;
      throw new StartError(`${cause.message}: check MUSTER_TLS_CERTIFICATE and MUSTER_TLS_KEY.`, { cause });
    }
  }

  /**
   * Reads the files again if they have changed. If one cannot be used, keeps all as they were, because a program may be
   * replacing them at this moment, and reads them again the next time.
   */
  async reload(): Promise<void> {
    try {
      const state = await stateOf(this.#pairs);
      if (state !== this.#state) this.certificates = await readAll(this.#pairs);
      this.#state = state;
      this.#failure = undefined;
    } catch (cause) {
      if (!(cause instanceof CertificateError)) throw cause;
      const { message: reason } = cause;
      if (reason !== this.#failure) this.#events.emit({ event: 'certificate_not_read', reason });
      this.#failure = reason;
    }
  }
}

/** Returns a text that changes whenever one of the files is replaced or rewritten. */
async function stateOf(pairs: readonly FilePair[]): Promise<string> {
  const files = pairs.flatMap(({ certificate_file, key_file }) => [certificate_file, key_file]);
  const states = files.map(async (file) => {
    const { ino, size, mtimeMs } = await orThrow(file, stat(file));
    return `${ino}:${size}:${mtimeMs}`;
  });
  return (await Promise.all(states)).join(' ');
}

async function readAll(pairs: readonly FilePair[]): Promise<Certificate[]> {
  return await Promise.all(
    pairs.map(async ({ certificate_file, key_file }) => {
      const read = (file: string) => orThrow(file, readFile(file, 'utf8'));
      const [certificate, key] = await Promise.all([read(certificate_file), read(key_file)]);
      try {
        return parseCertificate({ certificate, key });
      } catch (cause) {
        if (!(cause instanceof CertificateError)) throw cause;
        throw new CertificateError(`The certificate ${certificate_file} with the key ${key_file} ${cause.message}`);
      }
    }),
  );
}

async function orThrow<Result>(file: string, reading: Promise<Result>): Promise<Result> {
  return await reading.catch((cause: unknown) => {
    throw new CertificateError(`The file ${file} cannot be read (${cause})`, { cause });
  });
}
