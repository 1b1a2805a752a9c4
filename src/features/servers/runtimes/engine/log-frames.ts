import type { LogStream } from '../../tables.ts';

const HEADER_BYTES = 8;
/** Engines split longer lines. */
const FRAME_BYTES_MAX = 4 * 1024 ** 2;
const SPACE = 0x20;
const TIMESTAMP_BYTES_MAX = 40;
/** The streams by the first byte of a frame. */
const STREAMS: Record<number, LogStream> = { 1: 'std_out', 2: 'std_err' };

/** A line of a container's output, or a part of one. */
export interface LogFrame {
  stream: LogStream;
  /** When it was written, in ms. Podman gives whole seconds. */
  time: number;
  bytes: Uint8Array;
}

/** Splits an engine's log with timestamps into frames: stream, three zeros, length, then `time text`. */
export class LogFrames {
  #rest: Uint8Array = new Uint8Array();

  /** Returns the frames that are complete with this chunk. */
  push(chunk: Uint8Array): LogFrame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const frames: LogFrame[] = [];
    let start = 0;
    while (bytes.length - start >= HEADER_BYTES) {
      const length = view.getUint32(start + 4);
      if (length > FRAME_BYTES_MAX) throw new Error(`the container engine gave a log frame of ${length} bytes`);
      const end = start + HEADER_BYTES + length;
      if (end > bytes.length) break;
      const frame = frameOf(bytes[start] ?? 0, bytes.subarray(start + HEADER_BYTES, end));
      if (frame) frames.push(frame);
      start = end;
    }
    this.#rest = bytes.slice(start);
    return frames;
  }
}

function frameOf(kind: number, payload: Uint8Array): LogFrame | undefined {
  const stream = STREAMS[kind];
  const space = payload.subarray(0, TIMESTAMP_BYTES_MAX).indexOf(SPACE);
  if (stream === undefined || space === -1) return undefined;
  const time = Date.parse(Buffer.from(payload.subarray(0, space)).toString());
  return { stream, time, bytes: payload.subarray(space + 1) };
}
