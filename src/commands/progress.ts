const PAUSE_MS = 100;
const MEGABYTE = 1_000_000;
const CLEAR_LINE = '\r\u001b[K';

/** One line on stderr that shows how far a command is, if stderr is a terminal. Disposing removes it. */
export interface Progress extends Disposable {
  show(text: string): void;
}

export function openProgress(terminal: NodeJS.WriteStream = process.stderr): Progress {
  let shown_at = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      const now = performance.now();
      if (!terminal.isTTY || now - shown_at < PAUSE_MS) return;
      shown_at = now;
      terminal.write(`${CLEAR_LINE}${text}`);
    },
    [Symbol.dispose]() {
      if (terminal.isTTY) terminal.write(CLEAR_LINE);
    },
  };
}

export const megabytes = (bytes: number): string => `${(bytes / MEGABYTE).toFixed(1)} MB`;

export const percent = (part: number, whole: number): string => `${Math.floor((100 * part) / Math.max(whole, 1))} %`;
