import { SlotQueue } from '../../../../platform/limits/slot-queue.ts';
import { createByteShare } from '../../../../platform/pacing.ts';

/** Builds and layers that pods and nodes read at a time. Each has a few buffers. */
const READS_MAX = 256;
/** Builds that are hashed at a time. At most one hash waits for each build, because its servers share the digest. */
const HASHES = { at_once: 2, waiting_max: Number.POSITIVE_INFINITY };
const BYTES_EACH_TURN = 4 * 1_024 ** 2;

/** Packs a build. The same build gives the same bytes each time. */
export type Pack = () => AsyncGenerator<Uint8Array, void>;

interface ReadOptions {
  /** The offset of the first byte to read. */
  from?: number;
  /** Called while the bytes before that offset are packed, because the reader gets nothing meanwhile. */
  onSkipped?(): void;
  /** Called once at its end, also if its reader went away. */
  onClosed?(): void;
}

/** Reads packed builds: for pods and nodes, and for their digests. Paced, so that many reads do not block the service. */
export class BuildReads {
  readonly #takeShare = createByteShare(BYTES_EACH_TURN);
  readonly #hash_slots = new SlotQueue(HASHES);
  #reads = 0;

  constructor(private readonly reads_max = READS_MAX) {}

  /** Returns how many builds and layers are being read, and how many may be. */
  count(): { used: number; max: number } {
    return { used: this.#reads, max: this.reads_max };
  }

  /** Returns a build as a stream; undefined if too many are being read. */
  open(pack: Pack, options: ReadOptions = {}): ReadableStream<Uint8Array> | undefined {
    if (this.#reads >= this.reads_max) return undefined;
    this.#reads += 1;
    let is_open = true;
    const close = () => {
      if (!is_open) return;
      is_open = false;
      this.#reads -= 1;
      options.onClosed?.();
    };
    const bytes = this.#read(pack, options, () => is_open);
    return new ReadableStream({
      async pull(controller) {
        try {
          const { value, done } = await bytes.next();
          if (value) return controller.enqueue(value);
          if (done) controller.close();
        } catch (cause) {
          controller.error(cause);
        }
        close();
      },
      async cancel() {
        close();
        await bytes.return();
      },
    });
  }

  async *#read(pack: Pack, { from = 0, onSkipped }: ReadOptions, isOpen: () => boolean) {
    let bytes_to_skip = from;
    for await (const chunk of pack()) {
      await this.#takeShare(chunk.length);
      if (!isOpen()) return;
      if (bytes_to_skip < chunk.length) yield chunk.subarray(bytes_to_skip);
      else onSkipped?.();
      bytes_to_skip = Math.max(0, bytes_to_skip - chunk.length);
    }
  }

  /** Returns the digest of a game's build, in hexadecimal, and its length. Builds are hashed in turns of their games. */
  async hash(game_id: string, pack: Pack): Promise<{ sha256: string; bytes: number }> {
    return await this.#hash_slots.run(game_id, async () => {
      const hasher = new Bun.CryptoHasher('sha256');
      let bytes = 0;
      for await (const chunk of pack()) {
        await this.#takeShare(chunk.length);
        hasher.update(chunk);
        bytes += chunk.length;
      }
      return { sha256: hasher.digest('hex'), bytes };
    });
  }
}
