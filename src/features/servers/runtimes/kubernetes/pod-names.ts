/** The environment variable with the order of a container of a pod. */
export const ORDER_VARIABLE = 'MUSTER_POD';
/** The commands of Muster's executable in the containers of a pod. */
export const POD_COMMANDS = { build: 'pod-build', server: 'pod-server' } as const;
/** The folders of a pod. */
export const POD_FOLDERS = { build: '/build', work: '/tmp', output: '/.muster/output' } as const;
/** Muster's executable in an image of a game, with the libraries that it needs. */
export const POD_EXECUTABLE = { folder: '/.muster', file: '/.muster/muster', loader: '/.muster/ld.so' } as const;
