import type { Extract, Header } from 'tar-stream';
import { assert } from '../../../platform/errors.ts';
import { invalid, quote } from './invalid-build.ts';

/** An entry of a tar: its header, and its content as a stream. */
export type TarEntry = Extract extends AsyncIterable<infer Item> ? Item : never;

const SECONDS_MAX = 0xff_ff_ff_ff;

/**
 * Returns when a file was last changed, in seconds since 1970; 0 if its archive does not say so. The files of a build have
 * this time on each machine, so that all machines make the same image of it. Programs compare times as well, for example
 * those of a source and what was compiled from it.
 */
export function changedAt({ mtime }: Header): number {
  const seconds = (mtime?.getTime() ?? 0) / 1_000;
  return seconds >= 0 && seconds <= SECONDS_MAX ? seconds : 0;
}

/** Old tars mark a folder only by a slash at the end of its name, and tar-stream reports it as an empty file. */
export function isFolder({ name, type, size }: Header): boolean {
  return type === 'directory' || (type === 'file' && name.endsWith('/') && size === 0);
}

/** Refuses a sparse file: its content is a map of its holes and the rest, under another name. */
export function refuseSparse({ name, pax }: Header): void {
  if (!Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'))) return;
  throw invalid(`${quote(name)} is a sparse file; pack it whole (tar without --sparse)`);
}

/** Returns a chunk of an entry's content, of which the library does not know the type. */
export function asBytes(chunk: unknown): Uint8Array {
  assert(chunk instanceof Uint8Array, 'a tar entry yields bytes');
  return chunk;
}
