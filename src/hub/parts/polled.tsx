import type { ComponentChildren } from 'preact';
import type { Answer, Query, Readable } from '../data/api.ts';
import { useReading } from '../data/reading.ts';
import { WhenRead } from './when-read.tsx';

interface PolledProps<Path extends Readable> {
  path: Path;
  query?: Query;
  every_ms: number;
  children(body: Answer<Path, 'get'>, again: () => Promise<void>): ComponentChildren;
}

/** What a path without parameters answers, read again and again. */
export function Polled<Path extends Readable>({ path, query = {}, every_ms, children }: PolledProps<Path>) {
  const reading = useReading(path, {} as never, { query, every_ms });
  return <WhenRead of={reading}>{(body) => children(body, reading.again)}</WhenRead>;
}
