/** The programs of this machine that run containers without a daemon. */
export interface ContainerPrograms {
  /** An OCI runtime. */
  oci_runtime: string;
  /** A static program that starts the server, passes it signals, and ends with its status. */
  init: string;
  /** Connects the network of a container to that of the machine, without changing the latter. */
  pasta: string;
  nft: string;
  unshare: string;
  nsenter: string;
}

/** The programs, with the names under which each may be installed, the best first, and the Debian package of the first. */
const PROGRAMS: Record<keyof ContainerPrograms, { names: string[]; package: string }> = {
  oci_runtime: { names: ['runc', 'crun'], package: 'runc' },
  init: { names: ['tini-static', 'docker-init'], package: 'tini' },
  pasta: { names: ['pasta'], package: 'passt' },
  nft: { names: ['nft'], package: 'nftables' },
  unshare: { names: ['unshare'], package: 'util-linux' },
  nsenter: { names: ['nsenter'], package: 'util-linux' },
};

const NAMES = ['oci_runtime', 'init', 'pasta', 'nft', 'unshare', 'nsenter'] as const;

const DIRECTORIES = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Finds the programs. If some are missing, returns what to do about it. */
export function findContainerPrograms(path = DIRECTORIES): ContainerPrograms | string {
  const find = (name: keyof ContainerPrograms) =>
    PROGRAMS[name].names.flatMap((one) => Bun.which(one, { PATH: path }) ?? [])[0];
  const found = {
    oci_runtime: find('oci_runtime'),
    init: find('init'),
    pasta: find('pasta'),
    nft: find('nft'),
    unshare: find('unshare'),
    nsenter: find('nsenter'),
  };
  if (isComplete(found)) return found;
  const packages = NAMES.filter((name) => found[name] === undefined).map((name) => PROGRAMS[name].package);
  const names = [...new Set(packages)].join(' ');
  return `its machine lacks programs that run containers, which Debian installs by "apt-get install ${names}"`;
}

function isComplete(found: Partial<ContainerPrograms>): found is ContainerPrograms {
  return Object.values(found).every((one) => one !== undefined);
}
