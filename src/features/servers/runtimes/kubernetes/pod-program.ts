import { programOfImage, readImage } from '../container/image.ts';
import type { StartOrder } from '../runtime.ts';
import type { ServerOrder } from './pod-messages.ts';
import { POD_FOLDERS } from './pod-names.ts';

/** The program of a pod. */
export type PodProgram = Pick<ServerOrder, 'kind' | 'command' | 'directory' | 'environment'>;

const { build, work } = POD_FOLDERS;
const PATH = '/usr/local/bin:/usr/bin:/bin';

/** Returns the program of an archive or a script, which runs in Muster's own image. */
export function programOf(order: StartOrder): PodProgram {
  return {
    kind: order.build.kind === 'javascript' ? 'script' : 'archive',
    command: [...order.build.command, ...order.arguments],
    directory: build,
    environment: { PATH, HOME: work, TMPDIR: work, ...order.environment },
  };
}

/** Returns the program of an image or a bundle, as its own configuration says. */
export async function imageProgramOf(order: StartOrder): Promise<PodProgram> {
  return { kind: 'image', ...programOfImage(order, await readImage(order.build)) };
}
