/** Whole lines taken from the beginning of some output. */
export interface TakenLines {
  /** The lines, each ended by a newline. */
  content: Uint8Array;
  line_count: number;
  /** How much of the output they were. */
  consumed_bytes: number;
}

const NEWLINE = 0x0a;

/**
 * Takes whole lines. A line longer than the limit becomes several, whether its end has come or not; when the process has
 * ended, what is left without a newline is a line too.
 */
export function takeLines(output: Uint8Array, line_bytes_max: number, has_ended: boolean): TakenLines {
  const pieces: Uint8Array[] = [];
  let line_count = 0;
  let start = 0;
  const add = (end: number) => {
    pieces.push(output.subarray(start, end), ONE_NEWLINE);
    line_count += 1;
  };
  while (start < output.length) {
    const newline = output.indexOf(NEWLINE, start);
    const end = newline < 0 ? output.length : newline;
    if (end - start > line_bytes_max) {
      add(start + line_bytes_max);
      start += line_bytes_max;
    } else if (newline >= 0) {
      add(newline);
      start = newline + 1;
    } else if (has_ended) {
      add(end);
      start = end;
    } else break;
  }
  return { content: Buffer.concat(pieces), line_count, consumed_bytes: start };
}

const ONE_NEWLINE = Uint8Array.of(NEWLINE);

/** The lines of a piece, without their newlines. */
export function splitLines(content: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0; start < content.length; ) {
    const newline = content.indexOf(NEWLINE, start);
    const end = newline < 0 ? content.length : newline;
    lines.push(content.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
