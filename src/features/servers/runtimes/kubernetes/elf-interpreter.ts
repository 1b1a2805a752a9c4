import type { FileHandle } from 'node:fs/promises';

const HEADER_BYTES = 64;
const MAGIC = Buffer.from('\x7fELF', 'latin1');
/** 64 bits, little endian. */
const CLASS_AND_ORDER = Buffer.from([2, 1]);
const PROGRAM_HEADER_BYTES = 56;
const INTERPRETER_TYPE = 3;
const PROGRAM_HEADERS_MAX = 100;
const PATH_BYTES_MAX = 4_096;

interface Segment {
  offset: number;
  length: number;
}

/** Returns the path of the loader that a program names (PT_INTERP of elf(5)); undefined for a static program. */
export async function readInterpreter(file: FileHandle): Promise<string | undefined> {
  const segment = await findInterpreter(file);
  if (!segment) return undefined;
  const text = await read(file, segment);
  return text.toString('utf8', 0, text.indexOf(0));
}

/** Replaces the path of the loader that a program names. Throws an error if the new path is longer. */
export async function replaceInterpreter(file: FileHandle, path: string): Promise<void> {
  const segment = await findInterpreter(file);
  const bytes = Buffer.from(`${path}\0`);
  if (!segment || bytes.length > segment.length) throw new Error(`the program has no room for the loader ${path}`);
  const padded = Buffer.alloc(segment.length);
  bytes.copy(padded);
  await file.write(padded, 0, padded.length, segment.offset);
}

async function findInterpreter(file: FileHandle): Promise<Segment | undefined> {
  const header = await read(file, { offset: 0, length: HEADER_BYTES });
  const is_known = header.subarray(0, 4).equals(MAGIC) && header.subarray(4, 6).equals(CLASS_AND_ORDER);
  if (!is_known) throw new Error('the program is not an ELF file of 64 bits');
  const [first, bytes, count] = [Number(header.readBigUInt64LE(32)), header.readUInt16LE(54), header.readUInt16LE(56)];
  if (bytes < PROGRAM_HEADER_BYTES || count > PROGRAM_HEADERS_MAX) throw new Error('the program has unknown headers');
  for (let index = 0; index < count; index += 1) {
    const entry = await read(file, { offset: first + index * bytes, length: PROGRAM_HEADER_BYTES });
    if (entry.readUInt32LE(0) !== INTERPRETER_TYPE) continue;
    const segment = { offset: Number(entry.readBigUInt64LE(8)), length: Number(entry.readBigUInt64LE(32)) };
    if (segment.length > PATH_BYTES_MAX) throw new Error('the program names a loader with too long a path');
    return segment;
  }
  return undefined;
}

async function read(file: FileHandle, { offset, length }: Segment): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, offset);
  if (bytesRead !== length) throw new Error('the program is truncated');
  return bytes;
}
