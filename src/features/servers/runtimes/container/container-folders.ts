import { join } from 'node:path';
import { openServerFolders, type ServerFolders } from '../process/server-folders.ts';

/** The files of containers: one folder for each. */
export interface ContainerFolders extends ServerFolders {
  /** The process id of the container's first process, once it runs. */
  init(server_id: string): string;
  /** How many MiB of memory the container may have. */
  memory(server_id: string): string;
  /** Exists if the network of the container ended before the container. */
  networkEnded(server_id: string): string;
  /** Exists if the container could not be set up. */
  setUpFailed(server_id: string): string;
  /** What the programs that set up the container wrote. */
  setupLog(server_id: string): string;
}

export function openContainerFolders(directory: string): ContainerFolders {
  const folders = openServerFolders(directory);
  return {
    ...folders,
    init: (server_id) => join(folders.folderOf(server_id), 'init.pid'),
    memory: (server_id) => join(folders.folderOf(server_id), 'memory'),
    networkEnded: (server_id) => join(folders.folderOf(server_id), 'network.ended'),
    setUpFailed: (server_id) => join(folders.folderOf(server_id), 'setup.failed'),
    setupLog: (server_id) => join(folders.folderOf(server_id), 'setup.log'),
  };
}
