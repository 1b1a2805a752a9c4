import { existsSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import type { UnpackedBuild } from '../../../builds/builds.ts';
import { rootOf } from '../container/image.ts';
import type { EngineClient } from './engine-client.ts';
import { LABELS } from './engine-container.ts';

/** Time limit for sending the files of a build to an engine. */
const IMPORT_TIMEOUT_MS = 10 * 60_000;
const KEY_CHARACTERS = 32;
const DIRECTORIES = '/usr/local/bin:/usr/bin:/bin';

/** Returns the path of the program that packs the files of builds; undefined if this machine lacks it. */
export const findTar = (): string | undefined => Bun.which('tar', { PATH: DIRECTORIES }) ?? undefined;

const Images = Type.Array(
  Type.Object({
    Id: Type.String(),
    Labels: Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()])),
  }),
);
const Imported = Type.Object({ status: Type.String() });

/** An import for all servers of a build. */
interface Import {
  image_id: Promise<string>;
  /** How many starts wait for it. */
  waiters: number;
  abort: AbortController;
}

export interface EngineImages {
  /**
   * Returns the id of the image with the files of a build, after giving them to the engine if needed. Once `signal` is
   * aborted it throws its reason, and other callers still get the image.
   */
  ensure(build: UnpackedBuild, signal: AbortSignal): Promise<string>;
  /** Removes images of builds whose files Muster has removed, unless a container uses them. */
  removeUnused(): Promise<void>;
}

/**
 * Opens the images of an engine that Muster made. Each has the files of a build as Muster unpacked and checked them, and
 * nothing else: no configuration of an upload reaches the engine, and nothing is pulled.
 */
export function openEngineImages(client: EngineClient, node_id: string): EngineImages {
  const under_way = new Map<string, Import>();

  /** Lists the images of this Muster. Podman finds nothing by two labels at once. */
  async function list() {
    const filters = JSON.stringify({ label: [`${LABELS.machine}=${node_id}`] });
    return await client.read(Images, { method: 'GET', path: '/images/json', query: { filters } });
  }

  async function findOrImport(build: UnpackedBuild, key: string, signal: AbortSignal): Promise<string> {
    const image = (await list()).find(({ Labels }) => Labels?.[LABELS.build] === key);
    return image?.Id ?? (await importFiles(build, key, signal));
  }

  async function importFiles(build: UnpackedBuild, key: string, signal: AbortSignal): Promise<string> {
    const root = rootOf(build);
    const tar = Bun.spawn([findTar() ?? 'tar', '--create', '--numeric-owner', '--sort=name', '-C', root, '.'], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      env: { LC_ALL: 'C' },
    });
    try {
      const errors = new Response(tar.stderr).text();
      const { status: image_id } = await client.read(Imported, {
        method: 'POST',
        path: '/images/create',
        body: tar.stdout,
        signal,
        timeout_ms: IMPORT_TIMEOUT_MS,
        query: { fromSrc: '-', repo: `localhost/muster-build-${key}`, changes: labelsOf(build, key) },
      });
      if ((await tar.exited) === 0) return image_id;
      await remove(image_id);
      throw new Error(`the files of the build could not be read: ${(await errors).trim()}`);
    } finally {
      tar.kill();
    }
  }

  const labelsOf = ({ directory }: UnpackedBuild, key: string) => [
    `LABEL ${LABELS.machine}=${node_id}`,
    `LABEL ${LABELS.build}=${key}`,
    `LABEL ${LABELS.directory}=${encodeURIComponent(directory)}`,
  ];

  async function remove(image_id: string): Promise<void> {
    await client.call({ method: 'DELETE', path: `/images/${image_id}`, expected: [404, 409] });
  }

  function beginImport(build: UnpackedBuild, key: string): Import {
    const abort = new AbortController();
    const image_id = findOrImport(build, key, abort.signal);
    const one: Import = { image_id, waiters: 0, abort };
    under_way.set(key, one);
    const forget = () => void (under_way.get(key) === one && under_way.delete(key));
    abort.signal.addEventListener('abort', forget);
    image_id.then(forget, forget);
    return one;
  }

  return {
    async ensure(build, signal) {
      signal.throwIfAborted();
      const key = keyOf(build);
      const one = under_way.get(key) ?? beginImport(build, key);
      const aborted = Promise.withResolvers<never>();
      const leave = () => aborted.reject(signal.reason);
      signal.addEventListener('abort', leave);
      one.waiters += 1;
      try {
        return await Promise.race([one.image_id, aborted.promise]);
      } finally {
        signal.removeEventListener('abort', leave);
        one.waiters -= 1;
        if (one.waiters === 0) one.abort.abort(new Error('no server needs the image any more'));
      }
    },
    async removeUnused() {
      for (const { Id, Labels } of await list()) {
        const directory = Labels?.[LABELS.directory];
        if (directory !== undefined && !existsSync(decodeURIComponent(directory))) await remove(Id);
      }
    },
  };
}

/** A build's directory is used for one content only. */
function keyOf({ directory, sha256 = '' }: UnpackedBuild): string {
  return new Bun.CryptoHasher('sha256').update(`${sha256} ${directory}`).digest('hex').slice(0, KEY_CHARACTERS);
}
