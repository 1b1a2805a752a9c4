import { type Static, Type } from '@sinclair/typebox';
import { invalid, quote } from '../archives/invalid-build.ts';
import type { TarFiles } from '../archives/tar-files.ts';

const IMAGES_MAX = 100;
const LAYERS_MAX = 500;
const INDEX_DEPTH_MAX = 4;
/** Images named in a message. */
const NAMED_MAX = 10;

/** Length of an image's name; registries allow fewer characters. */
const TAG_LENGTH_MAX = 1_024;

/** The files that list the images of a tar, in the layouts of Docker and of OCI. */
const DOCKER_MANIFEST = 'manifest.json';
const OCI_INDEX = 'index.json';
/** Annotations with the name of an image in the OCI layout; the first is that of containerd and Docker. */
const CONTAINERD_NAME = 'io.containerd.image.name';
const OCI_NAME = 'org.opencontainers.image.ref.name';
const NAME_ANNOTATIONS = [CONTAINERD_NAME, OCI_NAME] as const;
/** Registries that names leave out. */
const IMPLIED_REGISTRY = /^(docker\.io\/library|docker\.io|localhost)\//;

const Tag = Type.String({ maxLength: TAG_LENGTH_MAX });

const DockerManifest = Type.Array(
  Type.Object({
    Config: Type.String(),
    RepoTags: Type.Optional(Type.Union([Type.Null(), Type.Array(Tag)])),
    Layers: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String(), { maxItems: LAYERS_MAX })])),
  }),
  { maxItems: IMAGES_MAX },
);

const Descriptor = Type.Object({
  digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
  platform: Type.Optional(Type.Object({ os: Type.Optional(Type.String()) })),
  annotations: Type.Optional(Type.Object({ [CONTAINERD_NAME]: Type.Optional(Tag), [OCI_NAME]: Type.Optional(Tag) })),
});
const OciIndex = Type.Object({ manifests: Type.Array(Descriptor, { maxItems: IMAGES_MAX }) });
const OciManifest = Type.Object({ config: Descriptor, layers: Type.Array(Descriptor, { maxItems: LAYERS_MAX }) });
const OciEntry = Type.Union([OciManifest, OciIndex]);

const Strings = Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String())]));
/** The configuration of an image, as Docker and OCI write it. */
const ImageConfig = Type.Object({
  architecture: Type.Optional(Type.String()),
  os: Type.Optional(Type.String()),
  config: Type.Optional(
    Type.Union([
      Type.Null(),
      Type.Object({
        User: Type.Optional(Type.String()),
        Env: Strings,
        Entrypoint: Strings,
        Cmd: Strings,
        WorkingDir: Type.Optional(Type.String()),
      }),
    ]),
  ),
  rootfs: Type.Optional(Type.Object({ diff_ids: Strings })),
});
export type ImageConfig = Static<typeof ImageConfig>;

/** An image in a tar: names of files in it. */
interface ListedImage {
  tags: string[];
  config_file: string;
  layers: string[];
}

export interface Image extends ListedImage {
  config: ImageConfig;
}

/** The requirements for the image to choose. */
export interface WantedImage {
  image_tag: string | null;
  /** As images name it, like `amd64`. */
  architecture: string;
}

/** Returns the image of a tar to run. Throws BUILDS_BUILD_INVALID if there is none, or more than one. */
export async function chooseImage(files: TarFiles, { image_tag, architecture }: WantedImage): Promise<Image> {
  const listed = await listImages(files);
  const images: Image[] = [];
  for (const image of listed) images.push({ ...image, config: await readConfig(files, image) });
  const named = images.filter(({ tags }) => image_tag !== null && tags.some((tag) => isSameTag(tag, image_tag)));
  const candidates = named.length > 0 ? named : images;
  const suited = candidates.filter(({ config }) => isFor(config, architecture));
  const [first, ...others] = suited;
  if (!first) throw platformRefusal(candidates, architecture);
  if (others.some((other) => other.config_file !== first.config_file))
    throw choiceRefusal(suited, { image_tag, is_named: named.length > 0 });
  return first;
}

async function listImages(files: TarFiles): Promise<ListedImage[]> {
  const images = files.has(DOCKER_MANIFEST) ? await listDockerImages(files) : await listOciImages(files);
  if (images.length === 0) throw invalid('it has no image; save one with "docker save NAME"');
  return images;
}

async function listDockerImages(files: TarFiles): Promise<ListedImage[]> {
  const manifest = await files.readJson(DOCKER_MANIFEST, DockerManifest);
  return manifest.map(({ Config, RepoTags, Layers }) => ({
    tags: RepoTags ?? [],
    config_file: Config,
    layers: Layers ?? [],
  }));
}

async function listOciImages(files: TarFiles): Promise<ListedImage[]> {
  if (!files.has(OCI_INDEX)) {
    throw invalid(`it has neither ${DOCKER_MANIFEST} nor ${OCI_INDEX}, so it was not made by "docker save"`);
  }
  const images: ListedImage[] = [];
  /** Limits the work for lists that refer to each other. */
  let visited = 0;

  async function addAll(name: string, tags: string[], depth: number): Promise<void> {
    visited += 1;
    if (depth > INDEX_DEPTH_MAX) throw invalid(`its lists of images are nested more than ${INDEX_DEPTH_MAX} deep`);
    if (visited > IMAGES_MAX) throw invalid(`it has more than ${IMAGES_MAX} images and lists of images`);
    const entry = await files.readJson(name, OciEntry);
    if ('layers' in entry) {
      images.push({ tags, config_file: blobOf(entry.config), layers: entry.layers.map(blobOf) });
      return;
    }
    for (const manifest of entry.manifests) {
      // Attestations of a build are listed like images of an unknown platform.
      if (manifest.platform?.os === 'unknown') continue;
      const own_tags = NAME_ANNOTATIONS.flatMap((key) => manifest.annotations?.[key] ?? []);
      await addAll(blobOf(manifest), own_tags.length > 0 ? own_tags : tags, depth + 1);
    }
  }

  await addAll(OCI_INDEX, [], 0);
  return images;
}

async function readConfig(files: TarFiles, { config_file, layers }: ListedImage): Promise<ImageConfig> {
  const config = await files.readJson(config_file, ImageConfig);
  // In the older layout, the name of the file is its digest.
  const digest = /^(?<sha256>[0-9a-f]{64})\.json$/.exec(config_file)?.groups?.sha256;
  if (digest !== undefined && digest !== files.digestOf(config_file))
    throw invalid(`the digest of ${quote(config_file)} is wrong`);
  const count = config.rootfs?.diff_ids?.length;
  if (count !== undefined && count !== layers.length) {
    throw invalid(`${quote(config_file)} names ${count} layers, but the image has ${layers.length}`);
  }
  return config;
}

function blobOf({ digest }: { digest: string }): string {
  return `blobs/${digest.replace(':', '/')}`;
}

/** Returns whether two names mean one image: `room` is `docker.io/library/room:latest`. */
function isSameTag(tag: string, wanted: string): boolean {
  const complete = (name: string) => {
    const short = name.replace(IMPLIED_REGISTRY, '');
    return short.includes(':', short.lastIndexOf('/') + 1) ? short : `${short}:latest`;
  };
  // The OCI layout may name only the tag.
  return complete(tag) === complete(wanted) || tag === complete(wanted).split(':').at(-1);
}

function isFor(config: ImageConfig, architecture: string): boolean {
  return (config.os ?? 'linux') === 'linux' && (config.architecture ?? architecture) === architecture;
}

function platformRefusal(images: Image[], architecture: string) {
  const platforms = images.map(({ config: { os = 'linux', architecture: processor = 'any processor' } }) =>
    `${os}/${processor}`.slice(0, 40),
  );
  const named = JSON.stringify([...new Set(platforms)].slice(0, NAMED_MAX).join(', '));
  return invalid(
    `its image is for ${named}, but this machine runs "linux/${architecture}"; build it with --platform linux/${architecture}`,
  );
}

/** `is_named`: whether the images have the wanted tag. */
function choiceRefusal(images: Image[], { image_tag, is_named }: { image_tag: string | null; is_named: boolean }) {
  if (image_tag !== null && is_named) return invalid(`it has ${images.length} images with the tag ${quote(image_tag)}`);
  const names = images.map(({ tags }) => tags[0] ?? 'an image without a tag').slice(0, NAMED_MAX);
  const listed = names.map(quote).join(', ');
  if (image_tag === null) return invalid(`it has ${images.length} images, and no image_tag says which: ${listed}`);
  return invalid(`none of its ${images.length} images has the tag ${quote(image_tag)}; it has: ${listed}`);
}
