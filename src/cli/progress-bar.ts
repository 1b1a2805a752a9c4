import { SingleBar } from 'cli-progress';
import { showBytes } from '../terminal/bytes.ts';

/** How far an upload is, on stderr; nothing without a terminal. Disposing removes it. */
export interface ProgressBar extends Disposable {
  add(bytes: number): void;
}

interface BarContent {
  label: string;
  done_bytes: number;
  total_bytes: number;
}

const WIDTH = 24;

export function openProgressBar({ label, done_bytes, total_bytes }: BarContent): ProgressBar {
  const bar = new SingleBar({
    stream: process.stderr,
    format: `${label} {bar} {percentage} %  {done} of ${showBytes(total_bytes)}`,
    barsize: WIDTH,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    clearOnComplete: true,
    // These leave the terminal's settings alone, which a killed command could not restore.
    hideCursor: null,
    linewrap: true,
    gracefulExit: false,
  });
  let done = done_bytes;
  bar.start(Math.max(total_bytes, 1), done, { done: showBytes(done) });
  return {
    add(bytes) {
      done += bytes;
      bar.update(done, { done: showBytes(done) });
    },
    [Symbol.dispose]: () => bar.stop(),
  };
}
