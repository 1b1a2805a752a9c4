import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineClient } from '../../../src/features/servers/runtimes/engine/engine-client.ts';
import { openEngineImages } from '../../../src/features/servers/runtimes/engine/engine-images.ts';
import { makeDataDirectory } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const IMAGE_ID = 'sha256:1234';

describe('an image that several servers of a build wait for', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeDataDirectory();
    await mkdir(join(directory, 'rootfs'));
    await Bun.write(join(directory, 'rootfs/file'), 'of the build');
  });
  afterAll(() => rm(directory, { recursive: true }));

  const build = () => ({
    game_id: crypto.randomUUID(),
    kind: 'oci_bundle' as const,
    sha256: undefined,
    directory,
    command: [],
  });

  /** Serves an engine without images, which answers imports once they are released. */
  function serveEngine() {
    const socket = join(directory, crypto.randomUUID());
    const released = Promise.withResolvers<void>();
    const imports: Request[] = [];
    const server = Bun.serve({
      unix: socket,
      async fetch(request) {
        if (new URL(request.url).pathname === '/images/json') return Response.json([]);
        imports.push(request);
        await request.arrayBuffer();
        await released.promise;
        return Response.json({ status: IMAGE_ID });
      },
    });
    const images = openEngineImages(new EngineClient(socket), 'here');
    return { images, imports, release: released.resolve, [Symbol.asyncDispose]: () => server.stop(true) };
  }

  test.each(['first', 'last'] as const)('is there for the others if the %s server is destroyed', async (which) => {
    await using engine = serveEngine();
    const aborts = [new AbortController(), new AbortController(), new AbortController()];
    const ids = aborts.map(({ signal }) => engine.images.ensure(build(), signal));
    const settled = Promise.allSettled(ids);
    await waitFor(() => engine.imports.length > 0, 'the import to begin');
    const destroyed = which === 'first' ? 0 : 2;
    aborts[destroyed]?.abort(new Error('it was destroyed'));
    // It does not wait for the import.
    await expect(ids[destroyed]).rejects.toThrow('it was destroyed');
    engine.release();
    const others = (await settled).filter((_, index) => index !== destroyed);
    expect(others).toEqual([
      { status: 'fulfilled', value: IMAGE_ID },
      { status: 'fulfilled', value: IMAGE_ID },
    ]);
    expect(engine.imports).toHaveLength(1);
  });

  test('is imported no longer if all the servers are destroyed, and again for the next server', async () => {
    await using engine = serveEngine();
    const aborts = [new AbortController(), new AbortController()];
    const settled = Promise.allSettled(aborts.map(({ signal }) => engine.images.ensure(build(), signal)));
    await waitFor(() => engine.imports.length === 1, 'the import to begin');
    for (const abort of aborts) abort.abort(new Error('it was destroyed'));
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await waitFor(() => engine.imports[0]?.signal.aborted, 'the import to end');
    const next = engine.images.ensure(build(), new AbortController().signal);
    engine.release();
    expect(await next).toBe(IMAGE_ID);
    expect(engine.imports).toHaveLength(2);
  });
});
