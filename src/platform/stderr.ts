import pino from 'pino';

/** Maximum bytes of lines that wait to be written. Further lines are dropped. */
const UNWRITTEN_BYTES_MAX = 1024 ** 2;
/** How long the end of the process waits for a reader that takes nothing. */
const READ_WITHIN_MS = 1_000;

interface StderrOptions {
  /** Called with the number of dropped lines once lines can be written again. */
  onDropped(count: number): void;
}

/** The standard error stream, for log lines. */
export interface Stderr {
  stream: ReturnType<typeof pino.destination>;
  /** Waits until all lines are written. Gives up if they cannot be written, or are not read. */
  flush(): Promise<void>;
}

/**
 * Opens stderr for log lines. Another thread writes them, so that a reader that does not read, or a full disk, delays no
 * other work.
 */
export function openStderr({ onDropped }: StderrOptions): Stderr {
  const stream = pino.destination({ fd: 2, sync: false, maxLength: UNWRITTEN_BYTES_MAX });
  const write = stream.write.bind(stream);
  let dropped = 0;
  /** When the current write began; undefined if everything is written. */
  let writing_since: number | undefined;
  let has_failed = false;
  // If the log cannot be written (a full disk, a closed terminal), the work that it describes must not fail.
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
  // Runs before pino's own listeners, which write the rest and wait until it is read.
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
    async flush() {
      while (writing_since !== undefined && !has_failed && !isUnread()) await Bun.sleep(1);
    },
  };
}
