import type { StartOrder } from '../runtime.ts';
import { type ImageRegistry, keyOf } from './image-registry.ts';
import type { PackedImage, PackedImages } from './packed-images.ts';
import { IMAGE_ANNOTATION, type PodFiles } from './pod-manifest.ts';
import { observePod } from './pod-observation.ts';
import type { Pod } from './pod-shapes.ts';
import type { Pods } from './pods.ts';

export const IMAGE_KINDS = ['docker_image', 'oci_bundle'] as const;
/** Time in which a pod becomes known whose image is asked for. */
const UNKNOWN_POD_MAX_MS = 5_000;
const POLL_MS = 100;

interface ClusterImagesOptions {
  /** The name of the registry for nodes. */
  host: string;
  registry: Pick<ImageRegistry, 'nameOf' | 'serve'>;
  packed: Pick<PackedImages, 'pack'>;
}

/** The images of builds, which the nodes of a cluster pull from Muster. */
export class ClusterImages {
  constructor(private readonly options: ClusterImagesOptions) {}

  /** Lets nodes pull the images of those pods that wait for their nodes. */
  serve(pods: Pick<Pods, 'list'>): void {
    this.options.registry.serve((key) => this.#open(key, pods));
  }

  /** Packs the build of a server, and returns its image. */
  async prepare({ build }: StartOrder): Promise<PodFiles> {
    const { host, registry, packed } = this.options;
    const { manifest } = await packed.pack(build.directory);
    return { are: 'image', image: `${host}/${registry.nameOf(build.directory)}@${manifest.digest}` };
  }

  /**
   * Returns an image by its key; undefined if no pod waits for it. A node may ask before this process knows the pod: the
   * answer to its creation was lost, or the pods are listed anew after a restart.
   */
  async #open(key: string, pods: Pick<Pods, 'list'>): Promise<PackedImage | undefined> {
    for (const asked = performance.now(); performance.now() - asked < UNKNOWN_POD_MAX_MS; await Bun.sleep(POLL_MS)) {
      const pod = pods.list().find((one) => keyOf(directoryOf(one)) === key && observePod(one).is === 'pending');
      if (pod) return await this.options.packed.pack(directoryOf(pod));
    }
    return undefined;
  }
}

export const isImage = ({ build }: StartOrder): boolean => IMAGE_KINDS.some((kind) => kind === build.kind);

const directoryOf = ({ metadata }: Pod): string => metadata.annotations?.[IMAGE_ANNOTATION] ?? '';
