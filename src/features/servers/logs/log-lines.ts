/** Complete lines from the start of some output. */
export interface TakenLines {
  /** The lines, each ended by a newline. */
  content: Uint8Array;
  line_count: number;
  /** Bytes of the output that they cover. */
  consumed_bytes: number;
  /** The number of lines that end at or before each of the marks. */
  lines_until: number[];
}

const NEWLINE = 0x0a;
const ONE_NEWLINE = Uint8Array.of(NEWLINE);

/**
 * Takes complete lines. Splits lines over the limit, between characters of UTF-8; once the process has ended, the rest without a newline is a line
 * too. Reads each byte once and copies output only to add a newline. `marks`: positions in the output, ascending.
 */
export function takeLines(
  output: Uint8Array,
  line_bytes_max: number,
  has_ended: boolean,
  marks: readonly number[] = [],
): TakenLines {
  const parts: Uint8Array[] = [];
  let line_count = 0;
  let line_start = 0;
  let part_start = 0;
  const lines_until: number[] = [];
  const startLineAt = (start: number) => {
    while (start > (marks[lines_until.length] ?? Number.POSITIVE_INFINITY)) lines_until.push(line_count);
    line_count += 1;
    line_start = start;
  };
  const endLineAt = (end: number) => {
    parts.push(output.subarray(part_start, end), ONE_NEWLINE);
    startLineAt(end);
    part_start = end;
  };
  for (let index = 0; index < output.length; index += 1) {
    if (output[index] === NEWLINE) startLineAt(index + 1);
    else if (index - line_start === line_bytes_max) endLineAt(startOfCharacter(output, index));
  }
  if (has_ended && line_start < output.length) endLineAt(output.length);
  if (part_start < line_start) parts.push(output.subarray(part_start, line_start));
  while (lines_until.length < marks.length) lines_until.push(line_count);
  const [only = new Uint8Array()] = parts;
  const content = parts.length > 1 ? Buffer.concat(parts) : only;
  return { content, line_count, consumed_bytes: line_start, lines_until };
}

/** Bytes of a character of UTF-8 after its first one. */
const CONTINUATION_BYTES_MAX = 3;
const isContinuation = (byte = 0) => (byte & 0xc0) === 0x80;

/** Returns where the character at an index begins; the index itself if the bytes around it are not UTF-8. */
function startOfCharacter(output: Uint8Array, index: number): number {
  let start = index;
  while (index - start < CONTINUATION_BYTES_MAX && isContinuation(output[start])) start -= 1;
  return isContinuation(output[start]) ? index : start;
}

/** Returns lines of a chunk without their newlines: at most `count`, after the first `skipped`. */
export function selectLines(content: Uint8Array, { skipped, count }: { skipped: number; count: number }): Uint8Array[] {
  let start = 0;
  for (let left = skipped; left > 0 && start < content.length; start += 1) if (content[start] === NEWLINE) left -= 1;
  const lines: Uint8Array[] = [];
  while (start < content.length && lines.length < count) {
    const newline = content.indexOf(NEWLINE, start);
    const end = newline < 0 ? content.length : newline;
    lines.push(content.subarray(start, end));
    start = end + 1;
  }
  return lines;
}

/**
 * Returns the lines of a chunk that contain a text, by their index in the chunk. It takes time in proportion to the chunk,
 * whatever the text is.
 */
export function findLines(content: Uint8Array, text: string, is_case_sensitive: boolean): Map<number, Uint8Array> {
  // Lower case may have another length, but never another number of lines.
  const original = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const searched = is_case_sensitive ? original : Buffer.from(original.toString().toLowerCase());
  const pattern = Buffer.from(is_case_sensitive ? text : text.toLowerCase());
  const indexes = new Set<number>();
  let line = 0;
  let line_start = 0;
  for (let at = searched.indexOf(pattern); at >= 0; at = searched.indexOf(pattern, line_start)) {
    for (let newline = searched.indexOf(NEWLINE, line_start); newline >= 0 && newline < at; ) {
      line += 1;
      line_start = newline + 1;
      newline = searched.indexOf(NEWLINE, line_start);
    }
    indexes.add(line);
    const end = searched.indexOf(NEWLINE, at);
    if (end < 0) break;
    line += 1;
    line_start = end + 1;
  }
  const lines = new Map<number, Uint8Array>();
  if (indexes.size === 0) return lines;
  let start = 0;
  for (let index = 0; start < original.length; index += 1) {
    const newline = original.indexOf(NEWLINE, start);
    const end = newline < 0 ? original.length : newline;
    if (indexes.has(index)) lines.set(index, original.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
