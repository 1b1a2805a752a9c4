import type { StartOrder } from '../runtime.ts';
import type { ImageRegistry } from './image-registry.ts';
import type { PackedImages } from './packed-images.ts';
import type { PodFiles } from './pod-manifest.ts';

export const IMAGE_KINDS = ['docker_image', 'oci_bundle'] as const;

interface ClusterImagesOptions {
  /** The name of the registry for nodes. */
  host: string;
  registry: Pick<ImageRegistry, 'nameOf'>;
  packed: Pick<PackedImages, 'pack'>;
}

/** The images of builds, which the nodes of a cluster pull from Muster. */
export class ClusterImages {
  constructor(private readonly options: ClusterImagesOptions) {}

  /** Packs the build of a server, and returns its image. */
  async prepare({ build_id, build }: StartOrder): Promise<PodFiles> {
    const { host, registry, packed } = this.options;
    const { manifest } = await packed.pack(build);
    return { kind: 'image', image: `${host}/${registry.nameOf(build_id)}@${manifest.digest}` };
  }
}

/** Returns whether a build is an image. */
export const isImage = ({ kind }: StartOrder['build']): boolean => IMAGE_KINDS.some((one) => one === kind);
