const PAUSE_MS = 100;
const SECOND_MS = 1_000;
const CLEAR_LINE = '\r\u001b[K';
/** Columns of a terminal that does not say how many it has. */
const COLUMNS_DEFAULT = 80;

/** Whether a line that is not finished is on the terminal. */
let is_shown = false;

/** One line on stderr that shows how far a command is, if stderr is a terminal. Disposing removes it. */
export interface Progress extends Disposable {
  show(text: string): void;
}

export function openProgress(): Progress {
  let shown_at = Number.NEGATIVE_INFINITY;
  return {
    show(text) {
      const now = performance.now();
      if (!process.stderr.isTTY || now - shown_at < PAUSE_MS) return;
      shown_at = now;
      is_shown = true;
      // The last column stays empty, because some terminals begin a new line after it.
      process.stderr.write(CLEAR_LINE + text.slice(0, Math.max(0, (process.stderr.columns || COLUMNS_DEFAULT) - 1)));
    },
    [Symbol.dispose]: removeProgress,
  };
}

/** Removes the line, if there is one, before something else is written. */
export function removeProgress(): void {
  if (is_shown) process.stderr.write(CLEAR_LINE);
  is_shown = false;
}

/** Does work. If it takes longer than a second, shows on stderr what it is, or how far, and for how many seconds it runs. */
export async function showWhile<Result>(what: string | (() => string), work: () => Promise<Result>): Promise<Result> {
  using progress = openProgress();
  const started = performance.now();
  const timer = setInterval(() => {
    const text = typeof what === 'string' ? what : what();
    progress.show(`${text} … ${Math.round((performance.now() - started) / SECOND_MS)} s`);
  }, SECOND_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

export const percent = (part: number, whole: number): string => `${Math.floor((100 * part) / Math.max(whole, 1))} %`;
