import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_STREAMS, type LogStream } from '../../tables.ts';
import { ENGINE_SECCOMP_PROFILE } from '../container/seccomp-profile.ts';

/** The files of an engine's containers: one folder for each, which exists before its container. */
export interface EngineFolders {
  output(server_id: string, stream: LogStream): string;
  /** How far the output has been copied from the engine. */
  positions(server_id: string): string;
  /** The filter of system calls, for an engine that takes the path of a file. */
  seccomp(server_id: string): string;
  has(server_id: string): boolean;
  create(server_id: string): void;
  remove(server_id: string): Promise<void>;
  list(): string[];
  /** Facts about a server that the engine does not know. */
  marks: Marks;
}

/**
 * created: the engine has started its container. The name is older than its meaning, and files of running servers have
 * it. waiting: the server was to start while the engine did not answer. failed: it could not be started, with the
 * reason. killed: Muster killed it.
 */
export type Mark = 'created' | 'waiting' | 'failed' | 'killed';

interface Marks {
  set(server_id: string, mark: Mark, text?: string): void;
  clear(server_id: string, mark: Mark): Promise<void>;
  /** Returns the text of a mark; undefined if it is not set. */
  read(server_id: string, mark: Mark): string | undefined;
}

export function openEngineFolders(directory: string): EngineFolders {
  const folderOf = (server_id: string) => join(directory, server_id);
  const output = (server_id: string, stream: LogStream) => join(folderOf(server_id), stream);
  const seccomp = (server_id: string) => join(folderOf(server_id), 'seccomp.json');
  const markOf = (server_id: string, mark: Mark) => join(folderOf(server_id), mark);
  return {
    output,
    seccomp,
    positions: (server_id) => join(folderOf(server_id), 'positions'),
    has: (server_id) => existsSync(folderOf(server_id)),
    create(server_id) {
      mkdirSync(folderOf(server_id), { mode: 0o700 });
      for (const stream of LOG_STREAMS) closeSync(openSync(output(server_id, stream), 'w', 0o600));
      writeFileSync(seccomp(server_id), ENGINE_SECCOMP_PROFILE, { mode: 0o600 });
    },
    remove: (server_id) => rm(folderOf(server_id), { recursive: true, force: true }),
    list: () => readdirSync(directory),
    marks: {
      set: (server_id, mark, text = '') => writeFileSync(markOf(server_id, mark), text, { mode: 0o600 }),
      clear: (server_id, mark) => rm(markOf(server_id, mark), { force: true }),
      read(server_id, mark) {
        const file = markOf(server_id, mark);
        return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
      },
    },
  };
}
