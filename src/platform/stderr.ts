import pino from 'pino';

/** Lines that cannot be written wait until this many bytes of them do; later ones are dropped. */
const UNWRITTEN_BYTES_MAX = 1024 ** 2;
/** A reader that takes nothing for as long is not waited for when the process ends. */
const READ_WITHIN_MS = 1_000;

interface StderrOptions {
  /** Called with the number of lines that were dropped, when lines can be written again. */
  onDropped(count: number): void;
}

/** Where log lines are written. */
export interface Stderr {
  stream: ReturnType<typeof pino.destination>;
  /** Resolves when all lines are written, cannot be, or are not read. */
  settle(): Promise<void>;
}

/**
 * Opens stderr for log lines. They are written by another thread: a reader that does not read, or a full disk, delays no
 * other work.
 */
export function openStderr({ onDropped }: StderrOptions): Stderr {
  const stream = pino.destination({ fd: 2, sync: false, maxLength: UNWRITTEN_BYTES_MAX });
  const write = stream.write.bind(stream);
  let dropped = 0;
  /** Since when a write is under way; undefined when everything is written. */
  let writing_since: number | undefined;
  let has_failed = false;
  // A log that cannot be written (its disk is full, its terminal was closed) must not fail the work that it describes.
  stream.on('error', () => {
    has_failed = true;
  });
  stream.on('drop', () => {
    dropped += 1;
  });
  stream.on('write', () => {
    has_failed = false;
    writing_since = performance.now();
  });
  stream.on('drain', () => {
    writing_since = undefined;
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    onDropped(count);
  });
  const isUnread = () => writing_since !== undefined && performance.now() - writing_since > READ_WITHIN_MS;
  const giveUp = () => {
    if (has_failed || isUnread()) stream.destroy();
  };
  // Before pino's own listeners, which write the rest and wait until it is read.
  process.prependListener('beforeExit', giveUp);
  process.prependListener('exit', giveUp);
  Object.assign(stream, {
    write(line: string) {
      writing_since ??= performance.now();
      return write(line);
    },
  });
  return {
    stream,
    async settle() {
      while (writing_since !== undefined && !has_failed && !isUnread()) await Bun.sleep(1);
    },
  };
}
