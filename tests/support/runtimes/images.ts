import { lstatSync, readlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { UNPACK_LIMITS, type UnpackLimits } from '../../../src/features/builds/archives/tar-reader.ts';
import type { Process as BundleProcess } from '../../../src/features/builds/containers/bundle.ts';
import { unpackBundle, unpackImage } from '../../../src/features/builds/containers/container-builds.ts';
import { buildRefusalOf } from '../build-refusal.ts';
import { sha256 } from '../objects/digest.ts';
import { listTree, packTar, type TarEntry } from '../tar.ts';

/** The architecture of this machine, as images name it. */
export const ARCHITECTURE = arch() === 'x64' ? 'amd64' : arch();

/** An image as its Dockerfile would describe it. */
export interface ImageParts {
  /** The entries of each layer, or the bytes of its tar. */
  layers: (TarEntry[] | Uint8Array)[];
  /** Compresses a layer, as some programs do before they store it. */
  compress?: (tar: Uint8Array) => Uint8Array;
  tags?: string[];
  config?: object;
  architecture?: string;
  os?: string;
}

interface Stored {
  config: Buffer;
  layers: Buffer[];
}

async function store({ layers, compress = (tar) => tar, ...image }: ImageParts): Promise<Stored> {
  const tars = await Promise.all(layers.map((layer) => (Array.isArray(layer) ? packTar(layer) : layer)));
  const { architecture = ARCHITECTURE, os = 'linux', config = { Cmd: ['/server'] } } = image;
  const rootfs = { type: 'layers', diff_ids: tars.map((tar) => `sha256:${sha256(tar)}`) };
  return {
    config: Buffer.from(JSON.stringify({ architecture, os, config, rootfs, history: [] })),
    layers: tars.map((tar) => Buffer.from(compress(tar))),
  };
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const file = (name: string, content: Uint8Array): TarEntry => ({ name, content });
const blobOf = (content: Uint8Array) => file(`blobs/sha256/${sha256(content)}`, content);

/** Returns the entries that `docker save` wrote until version 24. */
export async function dockerLayout(...images: ImageParts[]): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  const manifest: object[] = [];
  for (const image of images) {
    const { config, layers } = await store(image);
    const name = `${sha256(config)}.json`;
    const folders = layers.map((layer, index) => sha256(`${manifest.length} ${index} ${sha256(layer)}`));
    for (const [index, layer] of layers.entries()) {
      const folder = folders[index] ?? '';
      entries.push({ name: `${folder}/`, type: 'directory' }, file(`${folder}/VERSION`, Buffer.from('1.0')));
      entries.push(file(`${folder}/layer.tar`, layer));
    }
    entries.push(file(name, config));
    const Layers = folders.map((folder) => `${folder}/layer.tar`);
    manifest.push({ Config: name, RepoTags: image.tags ?? null, Layers });
  }
  return [...entries, file('manifest.json', json(manifest))];
}

/** Returns the entries of the OCI layout; with `manifest.json` as Docker writes it since version 25. */
export async function ociLayout(images: ImageParts[], { with_manifest = false } = {}): Promise<TarEntry[]> {
  const entries: TarEntry[] = [{ name: 'blobs/', type: 'directory' }];
  const [manifests, manifest]: object[][] = [[], []];
  for (const image of images) {
    const { config, layers } = await store(image);
    const described = (content: Uint8Array) => ({ digest: `sha256:${sha256(content)}`, size: content.length });
    const own = json({ schemaVersion: 2, config: described(config), layers: layers.map(described) });
    entries.push(...[config, ...layers, own].map(blobOf));
    for (const tag of image.tags ?? [undefined]) {
      const annotations = tag === undefined ? {} : { 'org.opencontainers.image.ref.name': tag };
      manifests?.push({ ...described(own), annotations });
    }
    const names = [config, ...layers].map((content) => blobOf(content).name);
    manifest?.push({ Config: names[0], RepoTags: image.tags ?? null, Layers: names.slice(1) });
  }
  entries.push(file('oci-layout', json({ imageLayoutVersion: '1.0.0' })));
  entries.push(file('index.json', json({ schemaVersion: 2, manifests })));
  if (with_manifest) entries.push(file('manifest.json', json(manifest)));
  return entries;
}

/** The result of unpacking an image or a bundle. */
export interface UnpackedContainer {
  /** Why it was refused, without the common beginning of all refusals; undefined if it was accepted. */
  refusal: string | undefined;
  /** The entries of `rootfs/`: type and mode, or the target of a link. */
  tree: Record<string, string>;
  /** The text of each file in `rootfs/`. */
  contents: Record<string, string>;
  owners: Record<string, string>;
  config: { ociVersion: string; process: BundleProcess; root: { path: string } } | undefined;
  /** The entries other than `rootfs/` and `config.json`. */
  others: string[];
  /** The entries outside the directory, where only a note was. */
  outside: Record<string, string>;
}

interface UnpackOptions {
  kind?: 'docker_image' | 'oci_bundle';
  image_tag?: string;
  command?: string[];
  architecture?: string;
  is_root?: boolean;
  limits?: Partial<UnpackLimits>;
}

/** Unpacks an image or a bundle and reads the result. Fails for any refusal but BUILDS_BUILD_INVALID. */
export async function unpackContainer(archive: Uint8Array, options: UnpackOptions = {}): Promise<UnpackedContainer> {
  const parent = await mkdtemp(join(tmpdir(), 'muster-image-'));
  try {
    const directory = join(parent, 'inside/build');
    await mkdir(directory, { recursive: true });
    await Bun.write(join(parent, 'note'), 'untouched');
    const { kind = 'docker_image', image_tag = null, command = [], ...rest } = options;
    const common = { ...rest, command, limits: { ...UNPACK_LIMITS, ...options.limits } };
    const stream = new Blob([new Uint8Array(archive)]).stream();
    const work =
      kind === 'docker_image'
        ? unpackImage(stream, directory, { ...common, image_tag })
        : unpackBundle(stream, directory, common);
    const refusal = await buildRefusalOf(work);
    const all = await listTree(directory);
    const below = Object.keys(all).flatMap((path) => (path.startsWith('rootfs/') ? path.slice('rootfs/'.length) : []));
    const on_disk = (path: string) => join(directory, 'rootfs', path);
    const described = (path: string) => {
      const stats = lstatSync(on_disk(path));
      return stats.isSymbolicLink() ? `link to ${readlinkSync(on_disk(path))}` : (all[`rootfs/${path}`] ?? '');
    };
    const tree = Object.fromEntries(below.map((path) => [path, described(path)]));
    const files = below.filter((path) => tree[path]?.startsWith('file'));
    const contents = await Promise.all(
      files.map(async (path) => [path, await Bun.file(on_disk(path)).text()] as const),
    );
    const ownerOf = (path: string) => `${lstatSync(on_disk(path)).uid}:${lstatSync(on_disk(path)).gid}`;
    const config = Bun.file(join(directory, 'config.json'));
    const result = {
      refusal,
      tree,
      contents: Object.fromEntries(contents),
      owners: Object.fromEntries(below.map((path) => [path, ownerOf(path)])),
      config: (await config.exists()) ? await config.json() : undefined,
      others: Object.keys(all).filter((path) => !/^(rootfs(\/.*)?|config\.json)$/.test(path)),
    };
    await rm(directory, { recursive: true });
    return { ...result, outside: await listTree(parent) };
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

/** What is outside the directory of an unpacked container: the note, and the empty folder above the directory. */
export const UNTOUCHED = { inside: 'folder 755', note: 'file 644' };
