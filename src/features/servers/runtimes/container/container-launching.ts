import { closeSync, mkdirSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readDescriptorsMax } from '../../../../platform/http/ports/open-connections.ts';
import { identifyProcess, type ProcessIdentity } from '../../../../platform/system/processes.ts';
import { createExitFile } from '../linux/exit-status.ts';
import { MARK } from '../linux/process-trees.ts';
import type { StartOrder } from '../runtime.ts';
import { cgroupOf, hasSwapLimit } from './container-cgroups.ts';
import { makeContainerConfig } from './container-config.ts';
import type { ContainerFolders } from './container-folders.ts';
import { type ContainerNetwork, HOSTS, RESOLV_CONF } from './container-network.ts';
import type { ContainerPrograms } from './container-programs.ts';
import { containerCommand } from './container-shim.ts';
import { readImage, rootOf } from './image.ts';

interface ContainerLaunchingOptions {
  programs: ContainerPrograms;
  folders: ContainerFolders;
  has_read_only_root: boolean;
}

interface ContainerLaunch {
  order: StartOrder;
  network: ContainerNetwork;
  onExit: () => void;
}

/** Creates the function that launches a container and returns its shim. Nothing of an earlier launch may be left. */
export function createContainerLaunching({ programs, folders, has_read_only_root }: ContainerLaunchingOptions) {
  const open_files_max = readDescriptorsMax();

  async function makeBundle(order: StartOrder, { rules }: ContainerNetwork): Promise<void> {
    const { server_id } = order;
    const folder = folders.folderOf(server_id);
    mkdirSync(folder, { mode: 0o700 });
    createExitFile(folders.exit(server_id));
    const image = await readImage(order.build);
    for (const name of ['rootfs', 'upper', 'overlay', 'state']) mkdirSync(join(folder, name), { mode: 0o755 });
    const config = makeContainerConfig({
      order,
      image,
      folder,
      init: programs.init,
      cgroup: cgroupOf(server_id),
      has_read_only_root,
      has_swap_limit: hasSwapLimit(),
      open_files_max,
    });
    const files = {
      'config.json': JSON.stringify(config),
      'resolv.conf': RESOLV_CONF,
      hosts: HOSTS,
      'network.nft': rules,
      netns: '',
      'setup.log': '',
      memory: String(order.resources.memory),
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o644 });
  }

  function spawnShim({ order: { server_id, build }, network, onExit }: ContainerLaunch): ProcessIdentity {
    const { pasta_arguments } = network;
    const folder = folders.folderOf(server_id);
    const root = relative(folder, rootOf(build));
    const files = [
      openSync(folders.output(server_id, 'std_out'), 'a', 0o600),
      openSync(folders.output(server_id, 'std_err'), 'a', 0o600),
      openSync(folders.exit(server_id), 'r+'),
    ] as const;
    try {
      const child = Bun.spawn(containerCommand({ programs, server_id, root, pasta_arguments }), {
        cwd: folder,
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', [MARK]: server_id },
        // A session of its own, so that a ctrl-C for the service does not reach it.
        detached: true,
        stdio: ['ignore', ...files],
        onExit,
      });
      child.unref();
      return identifyProcess(child.pid) ?? { pid: child.pid, start_ticks: 0, boot_id: '' };
    } finally {
      for (const file of files) closeSync(file);
    }
  }

  return async (launch: ContainerLaunch): Promise<ProcessIdentity> => {
    await makeBundle(launch.order, launch.network);
    return spawnShim(launch);
  };
}
