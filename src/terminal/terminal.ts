import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import { Failure } from './failure.ts';
import { removeProgress } from './progress-line.ts';

/** Where commands write: data to stdout, messages to stderr. */
export interface Output {
  /** Writes data as one line of JSON. */
  json(value: unknown): void;
  /** Writes data as indented JSON, for people. */
  record(value: unknown): void;
  /** Writes a line of data. */
  line(text: string): void;
  /** Writes rows below their headings, with columns as wide as their cells. */
  table(headings: string[], rows: string[][]): void;
  /** Writes a sequence to stdout that the terminal obeys. */
  control(sequence: string): void;
  /** Writes a message of one or more lines. */
  say(text: string): void;
  /** Writes why a command failed: one line of JSON to stderr. */
  sayFailure(failure: JsonFailure): void;
}

/** What a failed command writes with `--json`. */
export interface JsonFailure {
  exit_code: number;
  message: string;
  /** The code of the API's error, if it refused a request. */
  code?: string | undefined;
  ray_id?: string | undefined;
  metadata?: unknown;
}

const STDOUT = 1;
const PAUSE_WHEN_FULL_MS = 1;
const COLUMN_GAP = '  ';
/** Control characters, which a terminal obeys instead of showing, except the tab; and those that reorder what follows. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it removes
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a text as one line without control characters, because names and logs come from strangers. */
export function printable(text: string): string {
  return text.replace(CONTROL, '\ufffd');
}

/** Returns a value as JSON that a terminal shows as it is. Its only control characters are the newlines of an indentation. */
function toJson(value: unknown, indentation = 0): string {
  const toEscape = (character: string) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indentation).replace(CONTROL, toEscape);
}

/** Writes a line of data to stdout. */
function writeData(text: string): void {
  removeProgress();
  writeAll(`${text}\n`);
}

/** Writes to stdout. If its reader has ended, stops the command; console.log would go on. */
function writeAll(text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(STDOUT, rest));
    } catch (error) {
      if (hasCode(error, 'EPIPE')) return void stopAsHangup();
      if (!hasCode(error, 'EAGAIN')) throw toWriteFailure(error);
      // The reader is slow, and the pipe is full.
      Bun.sleepSync(PAUSE_WHEN_FULL_MS);
    }
  }
}

function toWriteFailure(error: unknown): unknown {
  if (hasCode(error, 'ENOSPC')) {
    return new Failure('The output cannot be written, because the disk is full. Free some space.');
  }
  return error instanceof Error && 'code' in error
    ? new Failure(`The output cannot be written (${error.code}).`)
    : error;
}

/** Stops this command as a closed terminal does: it may clean up first. If it ignores the signal, as under `nohup`, it exits. */
function stopAsHangup(): void {
  process.kill(process.pid, 'SIGHUP');
  if (process.listenerCount('SIGHUP') === 0) process.exit(128 + constants.signals.SIGHUP);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Writes lines to stderr. console.error would write in red. */
function writeWords(text: string): void {
  removeProgress();
  process.stderr.write(`${text}\n`);
}

export const terminal: Output = {
  json: (value) => writeData(toJson(value)),
  record: (value) => writeData(toJson(value, 2)),
  line: (text) => writeData(printable(text)),
  table(headings, rows) {
    const lines = [headings, ...rows].map((row) => row.map(printable));
    const widths = headings.map((_, column) => Math.max(...lines.map((row) => Bun.stringWidth(row[column] ?? ''))));
    for (const row of lines) {
      const cells = row.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(cell)));
      writeData(cells.join(COLUMN_GAP).trimEnd());
    }
  },
  control: writeAll,
  say: (text) => writeWords(text.split('\n').map(printable).join('\n')),
  sayFailure: (error) => writeWords(toJson({ error })),
};

/** Returns a message of the service, which is written to stand inside a sentence, as a sentence of its own. */
export function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Returns how long ago a moment was, in its largest unit: `3m`. */
export function ago(moment: string | number, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - new Date(moment).getTime()) / 1_000));
  const units: [size: number, name: string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'm'],
  ];
  const [size, name] = units.find(([one]) => seconds >= one) ?? [1, 's'];
  return `${Math.floor(seconds / size)}${name}`;
}

/** Returns a number with its noun: `1 lobby`, `2 lobbies`. */
export function counted(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}`;
}

/** Returns the end of an id, which is enough to recognize it. */
export function shortId(id: string): string {
  return id.slice(-12);
}
