import { ServiceError } from '../errors.ts';
import { CallerSlots } from '../limits/caller-slots.ts';
import { countingKeyOf } from '../networks.ts';
import { observeBody } from './observed-body.ts';

/** The limit of one address, or of an IPv6 /64. Many players may share it, and a browser has a few transfers for each. */
const PER_ADDRESS_MAX = 256;

interface TransferSettings {
  transfers_max: number;
  /** Undefined if files are on disk. */
  s3: object | undefined;
  limits: { is_on: boolean; scale: number };
}

/** Ends a transfer. Repeating it is harmless. */
type EndTransfer = () => void;

/**
 * Limits concurrent uploads, and downloads from the object storage. A slow client keeps a request to the object
 * storage, or a file, open, so the clients of one address must not have all transfers.
 */
export interface Transfers {
  /**
   * Begins a transfer. It also ends when its client disconnects. Throws TOO_MANY_TRANSFERS if the address is at its limit,
   * and TRANSFERS_BUSY if the service is.
   */
  begin(address: string, client: AbortSignal): EndTransfer;
  /** Returns how many transfers are in progress. */
  count(): number;
  /** Returns the content of `open`. It counts as a transfer until it has been read, has failed or is cancelled. */
  download(
    address: string,
    client: AbortSignal,
    open: () => Promise<ReadableStream<Uint8Array>>,
  ): Promise<ReadableStream<Uint8Array>>;
}

export function createTransfers({ transfers_max, s3, limits }: TransferSettings): Transfers {
  const per_address = limits.is_on ? PER_ADDRESS_MAX * limits.scale : Number.POSITIVE_INFINITY;
  const slots = new CallerSlots(per_address);
  let in_progress = 0;

  function begin(address: string, client: AbortSignal): EndTransfer {
    if (in_progress >= transfers_max) throw new ServiceError('TRANSFERS_BUSY', {});
    const network = countingKeyOf(address);
    if (!slots.take(network)) {
      throw new ServiceError('TOO_MANY_TRANSFERS', { limit: per_address }, { retry_after_ms: 1_000 });
    }
    in_progress += 1;
    let has_ended = false;
    const end = () => {
      if (has_ended) return;
      has_ended = true;
      in_progress -= 1;
      slots.free(network);
      client.removeEventListener('abort', end);
    };
    if (client.aborted) end();
    else client.addEventListener('abort', end);
    return end;
  }

  return {
    begin,
    count: () => in_progress,
    async download(address, client, open) {
      // A file on disk needs no request, and Bun sends its length only with the stream that it made itself.
      if (!s3) return await open();
      const end = begin(address, client);
      try {
        return observeBody(await open(), { onEnd: end });
      } catch (error) {
        end();
        throw error;
      }
    },
  };
}
