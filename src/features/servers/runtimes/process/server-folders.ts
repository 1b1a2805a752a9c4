import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogStream } from '../../tables.ts';

/** The files of servers: one folder for each. */
export interface ServerFolders {
  folderOf(server_id: string): string;
  /** The directory that the server may write to. It belongs to the server's user. */
  work(server_id: string): string;
  output(server_id: string, stream: LogStream): string;
  /** The exit status of the server; empty until it has ended. */
  exit(server_id: string): string;
  /** The order for the launcher of the server, for a moment. */
  order(server_id: string): string;
  /** Exists if the server was started with rules that it binds only its own TCP ports. */
  portRules(server_id: string): string;
  /** The record of the server's control group. */
  group(server_id: string): string;
  list(): string[];
}

export function openServerFolders(directory: string): ServerFolders {
  const folderOf = (server_id: string) => join(directory, server_id);
  return {
    folderOf,
    work: (server_id) => join(folderOf(server_id), 'work'),
    output: (server_id, stream) => join(folderOf(server_id), stream),
    exit: (server_id) => join(folderOf(server_id), 'exit'),
    order: (server_id) => join(folderOf(server_id), 'order'),
    portRules: (server_id) => join(folderOf(server_id), 'port-rules'),
    group: (server_id) => join(folderOf(server_id), 'group'),
    list: () => readdirSync(directory),
  };
}

/** Returns the user that a path belongs to; undefined if it does not exist. */
export function ownerOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.uid;
}
