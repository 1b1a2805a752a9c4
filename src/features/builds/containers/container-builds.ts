import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { IMAGE_ARCHITECTURE } from '../../../platform/system/architecture.ts';
import { InvalidBuild, invalid } from '../archives/invalid-build.ts';
import { asBytes, type TarEntry } from '../archives/tar-entry.ts';
import { JSON_BYTES_MAX, parseJson, TarFiles } from '../archives/tar-files.ts';
import {
  countPacked,
  IS_EMPTY,
  readTar,
  type TakeRoom,
  UNPACK_LIMITS,
  type UnpackLimits,
} from '../archives/tar-reader.ts';
import { BundleConfig, bundleConfigOf, type Process, processOfBundle, processOfImage } from './bundle.ts';
import { chooseImage, type Image } from './image-layout.ts';
import { Rootfs } from './rootfs.ts';

export interface UnpackContainerOptions {
  /** The build's own command; empty if it has none. */
  command: string[];
  limits?: UnpackLimits;
  takeRoom?: TakeRoom;
  is_root?: boolean;
}

interface UnpackImageOptions extends UnpackContainerOptions {
  image_tag: string | null;
  architecture?: string;
}

/**
 * Unpacks the output of `docker save` to a new directory, as an OCI bundle: `rootfs/` and `config.json`. Reads the
 * layouts of Docker and of OCI, also from other programs, and verifies digests. The content may be hostile: see `Rootfs`.
 * Throws BUILDS_BUILD_INVALID; then the caller removes the directory.
 */
export async function unpackImage(
  archive: ReadableStream<Uint8Array>,
  directory: string,
  options: UnpackImageOptions,
): Promise<void> {
  const { image_tag, architecture = IMAGE_ARCHITECTURE } = options;
  const reading = openReading(options);
  // The list of layers is at the end of the tar, so they are stored first.
  const stored = join(directory, 'stored');
  await mkdir(stored);
  const files = new TarFiles(stored);
  await readTar(countPacked(archive, reading.count), reading, (entry) => files.add(entry));
  if (reading.count.entries === 0) throw invalid(IS_EMPTY);
  const image = await chooseImage(files, { image_tag, architecture });
  const rootfs = await openRootfs(directory, reading);
  await applyLayers(files, image, rootfs, reading);
  await rm(stored, { recursive: true });
  await writeConfig(directory, await processOfImage(image.config, rootfs), options);
}

/** Unpacks a tar with `config.json` and `rootfs/` to a new directory, like `unpackImage`. */
export async function unpackBundle(
  archive: ReadableStream<Uint8Array>,
  directory: string,
  options: UnpackContainerOptions,
): Promise<void> {
  const reading = openReading(options);
  const rootfs = await openRootfs(directory, reading);
  let config: string | undefined;
  let has_rootfs = false;
  await readTar(countPacked(archive, reading.count), reading, async (entry) => {
    const name = entry.header.name.replace(/^(\.\/)+/, '');
    if (name === 'config.json') config = await readText(entry);
    has_rootfs ||= name.startsWith('rootfs/') || name === 'rootfs';
    await rootfs.writeBelow('rootfs', entry);
  });
  if (config === undefined || !has_rootfs) {
    throw invalid('it needs both config.json and rootfs/ at its top: pack it from inside the folder of the bundle');
  }
  await writeConfig(directory, processOfBundle(parseJson(config, 'config.json', BundleConfig)), options);
}

type Reading = ReturnType<typeof openReading>;

function openReading({
  limits = UNPACK_LIMITS,
  takeRoom = async () => {},
  is_root = process.getuid?.() === 0,
}: UnpackContainerOptions) {
  return { limits, takeRoom, is_root, count: { packed_bytes: 0, unpacked_bytes: 0, entries: 0 } };
}

async function openRootfs(directory: string, reading: Reading): Promise<Rootfs> {
  const path = join(directory, 'rootfs');
  await mkdir(path, { mode: 0o755 });
  return new Rootfs(path, reading);
}

/** Applies the layers of an image in order. They share the limits of one archive. */
async function applyLayers(files: TarFiles, image: Image, rootfs: Rootfs, reading: Reading): Promise<void> {
  // The stored files are removed at the end, so they do not count as unpacked.
  reading.count.unpacked_bytes = 0;
  for (const [index, name] of image.layers.entries()) {
    const hasher = new Bun.CryptoHasher('sha256');
    const onBytes = (bytes: Uint8Array) => void hasher.update(bytes);
    rootfs.beginLayer();
    const layer = Bun.file(files.get(name)).stream();
    try {
      await readTar(layer, { ...reading, onBytes }, (entry) => rootfs.applyLayerEntry(entry));
    } catch (error) {
      throw inLayer(index + 1, error);
    }
    const expected = image.config.rootfs?.diff_ids?.[index];
    const digest = `sha256:${hasher.digest('hex')}`;
    if (expected !== undefined && expected !== digest) throw invalid(`the digest of its layer ${index + 1} is wrong`);
  }
}

/** Says in which layer an archive is invalid. */
function inLayer(number: number, error: unknown): unknown {
  return error instanceof InvalidBuild ? invalid(`in its layer ${number}, ${error.reason}`, error) : error;
}

async function writeConfig(directory: string, process: Process, { command }: UnpackContainerOptions): Promise<void> {
  await Bun.write(join(directory, 'config.json'), bundleConfigOf(process, command));
}

async function readText(entry: TarEntry): Promise<string> {
  if (entry.header.size > JSON_BYTES_MAX) throw invalid('its config.json is too large');
  return Buffer.concat(await Array.fromAsync(entry, asBytes)).toString();
}
