import type { Socket } from 'bun';

/** Maximum of bytes kept for a target. The source is paused at once, but what Bun has read already still arrives. */
const KEPT_BYTES_MAX = 4 * 1024 ** 2;

/**
 * Copies the bytes of one socket to another. The source is paused while the target accepts none, so that a slow reader
 * slows its writer down. The end of the source becomes the end of the target, after the last byte.
 */
export class Direction {
  readonly #source: Socket<unknown>;
  #target: Socket<unknown> | undefined;
  #unsent: Buffer[] = [];
  #unsent_bytes = 0;
  #is_ended = false;
  /** Whether every byte and the end have been passed on. */
  is_done = false;

  constructor(source: Socket<unknown>) {
    this.#source = source;
  }

  /** Begins to write to the target, which is open, and sends it `header` first. */
  attach(target: Socket<unknown>, header?: Buffer): void {
    this.#target = target;
    if (header) {
      this.#unsent.unshift(header);
      this.#unsent_bytes += header.length;
    }
    this.drain();
  }

  /** Passes bytes on. Returns false if they cannot be kept until the target accepts them. */
  pass(bytes: Buffer): boolean {
    if (this.#unsent.length > 0 || !this.#target) return this.#keep(bytes);
    const written = Math.max(0, this.#target.write(bytes));
    return written === bytes.length || this.#keep(bytes.subarray(written));
  }

  /** Notes that the source has sent everything. */
  end(): void {
    this.#is_ended = true;
    this.#finish();
  }

  /** Writes what the target did not accept before. */
  drain(): void {
    const target = this.#target;
    if (!target) return;
    for (let first = this.#unsent[0]; first; first = this.#unsent[0]) {
      const written = Math.max(0, target.write(first));
      this.#unsent_bytes -= written;
      if (written < first.length) {
        this.#unsent[0] = first.subarray(written);
        return;
      }
      this.#unsent.shift();
    }
    this.#source.resume();
    this.#finish();
  }

  #keep(bytes: Buffer): boolean {
    this.#source.pause();
    // Bun reuses its buffer.
    this.#unsent.push(Buffer.from(bytes));
    this.#unsent_bytes += bytes.length;
    return this.#unsent_bytes <= KEPT_BYTES_MAX;
  }

  #finish(): void {
    if (!this.#is_ended || this.#unsent.length > 0 || !this.#target || this.is_done) return;
    this.is_done = true;
    this.#target.shutdown();
  }
}
