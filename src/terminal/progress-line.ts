import { SECOND_MS } from '../shared/units.ts';

const PAUSE_MS = 100;
const CLEAR_LINE = '\r\u001b[K';
/** Columns of a terminal that does not say how many it has. */
const COLUMNS_DEFAULT = 80;

/** Whether a line that is not finished is on the terminal. */
let is_shown = false;

/** One line on stderr that shows how far a command is, if stderr is a terminal. Disposing removes it. */
export interface Progress extends Disposable {
  /** Shows what is being done, and how far it is. Something new is shown at once. */
  show(what: string, how_far: string): void;
}

export function openProgress(): Progress {
  let shown = { what: '', at: Number.NEGATIVE_INFINITY };
  return {
    show(what, how_far) {
      const now = performance.now();
      const is_too_soon = what === shown.what && now - shown.at < PAUSE_MS;
      if (!process.stderr.isTTY || is_too_soon) return;
      shown = { what, at: now };
      const text = `${what} … ${how_far}`;
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
    const seconds = Math.round((performance.now() - started) / SECOND_MS);
    progress.show(typeof what === 'string' ? what : what(), `${seconds} s`);
  }, SECOND_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

export const percent = (part: number, whole: number): string => `${Math.floor((100 * part) / Math.max(whole, 1))} %`;
