import { SHELL } from '../linux/exit-status.ts';
import type { ContainerPrograms } from './container-programs.ts';

/**
 * Sets up a container, runs it, and writes its exit status to file descriptor 3. It runs in a mount namespace of its own,
 * so the mounts and the network of the container end with its processes, however they end. `--keep`: the control group tells
 * later whether the container exceeded its memory.
 *
 * A container whose network ends is killed, because its server could not be reached any more. Then `network.ended` exists.
 *
 * Signals to the group do not end the shim. The parentheses keep the shell's own messages, such as `Killed`, out of the
 * server's stderr. `init.pid` exists once the program runs. Errors of the set-up are in `setup.log`; `setup.failed` exists
 * if the shim ended because of them.
 */
const SHIM = `
trap : TERM INT HUP
unshare=$1 nsenter=$2 nft=$3 pasta=$4 oci_runtime=$5 root=$6 id=$7
shift 7
exec 4>&1 5>&2 >setup.log 2>&1
trap '[ -s init.pid ] || : >setup.failed' EXIT
set -e
mount -t overlay overlay -o "lowerdir=$root,upperdir=upper,workdir=overlay" rootfs || cp -a -- "$root/." rootfs/
"$unshare" --net=netns true
"$nsenter" --net=netns "$nft" -f network.nft
{
  "$pasta" "$@" --pid pasta.pid --netns "$PWD/netns" || true
  if [ ! -e ended ]; then : >network.ended; "$oci_runtime" --root state kill "$id" KILL; fi
} 3>&- 4>&- 5>&- &
network=$!
until [ -s pasta.pid ]; do kill -0 "$network"; sleep 0.01; done
set +e
("$oci_runtime" --root state --log runtime.log run --keep --bundle . --pid-file init.pid "$id") >&4 2>&5 3>&- 4>&- 5>&-
status=$?
: >ended
kill "$(cat pasta.pid)"
echo "$status" >&3
`;

export interface ContainerCommand {
  programs: ContainerPrograms;
  server_id: string;
  /** The directory of the image's files, relative to the folder of the server, because mount options have no quotes. */
  root: string;
  pasta_arguments: string[];
}

/** Returns the command that runs a container, from the folder of its server. */
export function containerCommand({ programs, server_id, root, pasta_arguments }: ContainerCommand): string[] {
  const { unshare, nsenter, nft, pasta, oci_runtime } = programs;
  return [
    unshare,
    '--mount',
    '--propagation',
    'private',
    SHELL,
    '-c',
    SHIM,
    'muster-container',
    unshare,
    nsenter,
    nft,
    pasta,
    oci_runtime,
    root,
    server_id,
    ...pasta_arguments,
  ];
}
