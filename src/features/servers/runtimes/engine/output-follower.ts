import { readFileSync } from 'node:fs';
import { type FileHandle, open, rename, writeFile } from 'node:fs/promises';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';
import { LOG_STREAMS, type LogStream } from '../../tables.ts';
import type { ReachedSize } from '../output/write-times.ts';
import { type LogFrame, LogFrames } from './log-frames.ts';

/** How often the positions are recorded while there is output. */
const RECORD_EVERY_MS = 1_000;
const MS_PER_SECOND = 1_000;

/** Output that the engine dates with this time or a later one begins at this offset of the file. */
const Position = Type.Object({ time: Type.Number(), offset: Type.Number() });
type Position = Static<typeof Position>;
const Positions = Type.Object({ std_out: Position, std_err: Position });

export interface FollowedOutput {
  /** The file of each stream. */
  files: Record<LogStream, string>;
  /** The file that records the positions. */
  positions: string;
  /** Opens the engine's log from a time on, in whole seconds. */
  open(since_seconds: number): Promise<ReadableStream<Uint8Array>>;
  /** Is called with the time at which the output reached a size, before the file of the stream does. */
  onWritten(stream: LogStream, reached: ReachedSize): void;
}

/**
 * Copies the output of a container from the engine's log to files, until the container ends. Every byte has a fixed offset
 * in its file, so a copy that continues after a restart of the service writes the last ones again with no effect.
 */
export async function followOutput({ files, positions: record, ...engine }: FollowedOutput): Promise<void> {
  const positions = readPositions(record);
  const handles = {
    std_out: await open(files.std_out, 'r+'),
    std_err: await open(files.std_err, 'r+'),
  };
  try {
    const copies = {
      std_out: new StreamCopy(handles.std_out, positions.std_out),
      std_err: new StreamCopy(handles.std_err, positions.std_err),
    };
    const recordPositions = async () => {
      const text = JSON.stringify({ std_out: copies.std_out.position, std_err: copies.std_err.position });
      const unfinished = `${record}.${crypto.randomUUID()}`;
      await writeFile(unfinished, text, { mode: 0o600 });
      await rename(unfinished, record);
    };
    const since_ms = Math.min(...LOG_STREAMS.map((stream) => positions[stream].time));
    const frames = new LogFrames();
    let recorded_at = performance.now();
    for await (const chunk of await engine.open(Math.floor(since_ms / MS_PER_SECOND))) {
      for (const frame of frames.push(chunk)) {
        const size = copies[frame.stream].add(frame);
        if (size !== undefined) engine.onWritten(frame.stream, { size, at_ms: frame.time });
      }
      for (const stream of LOG_STREAMS) await copies[stream].write();
      if (performance.now() - recorded_at < RECORD_EVERY_MS) continue;
      await recordPositions();
      recorded_at = performance.now();
    }
  } finally {
    for (const stream of LOG_STREAMS) await handles[stream].close();
  }
}

/** Returns how far the output was copied. A file that a full disk left empty or cut counts as none. */
function readPositions(file: string): Static<typeof Positions> {
  const start = { time: 0, offset: 0 };
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (Value.Check(Positions, value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError || hasErrorCode(error, 'ENOENT'))) throw error;
  }
  return { std_out: start, std_err: start };
}

/** Writes one stream of a container to its file. */
class StreamCopy {
  #waiting: Uint8Array[] = [];
  /** The offset of the first waiting byte. */
  #start: number;
  /** The offset after the last waiting byte. */
  #end: number;
  /** The time of the first frame to copy. Earlier frames are in the file already. */
  readonly #from: number;

  constructor(
    private readonly file: FileHandle,
    /** The time of the last frame, and the offset of the first frame with that time: from there a later copy continues. */
    public position: Position,
  ) {
    this.#start = position.offset;
    this.#end = position.offset;
    this.#from = position.time;
  }

  /** Returns the size of the file with this frame; undefined if an earlier copy has it. */
  add({ time, bytes }: LogFrame): number | undefined {
    if (time < this.#from) return undefined;
    if (time > this.position.time) this.position = { time, offset: this.#end };
    this.#waiting.push(bytes);
    this.#end += bytes.length;
    return this.#end;
  }

  async write(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    for (let written = 0; written < bytes.length; ) {
      written += (await this.file.write(bytes, written, bytes.length - written, this.#start + written)).bytesWritten;
    }
    this.#start = this.#end;
  }
}
