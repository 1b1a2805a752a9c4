/** The environment variable with the order of a container of a pod. */
export const POD_ORDER = 'MUSTER_POD';
/** The commands of Muster's executable in the containers of a pod. */
export const POD_COMMANDS = { build: 'pod-build', server: 'pod-server' } as const;
/** The folders of a pod. */
export const POD_FOLDERS = { build: '/build', work: '/tmp', output: '/output' } as const;
