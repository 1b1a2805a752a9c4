import { describe, expect, test } from 'bun:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BuildReads } from '../../../../src/features/servers/runtimes/kubernetes/build-reads.ts';
import { sha256 } from '../../../support/objects/digest.ts';
import { waitFor } from '../../../support/wait.ts';

const CHUNK = new Uint8Array(1_024 ** 2);
/** Chunks that may be packed in one turn of the event loop. */
const EACH_TURN_MAX = 4;

describe('kubernetes: reads of packed builds', () => {
  /** Makes a build of some chunks, and the progress of its packing. */
  function makeBuild(chunks: number) {
    const packing = { chunks: 0, is_ended: false };
    async function* pack() {
      try {
        for (let chunk = 0; chunk < chunks; chunk += 1) {
          packing.chunks += 1;
          yield CHUNK;
        }
      } finally {
        packing.is_ended = true;
      }
    }
    return { pack, packing };
  }

  /** Returns the most chunks that are packed in a turn of the event loop until `work` is done. */
  async function mostInTurn(packing: { chunks: number }, work: Promise<unknown>): Promise<number> {
    let is_done = false;
    const done = work.then(() => {
      is_done = true;
    });
    let most = 0;
    while (!is_done) {
      const before = packing.chunks;
      await nextTurn();
      most = Math.max(most, packing.chunks - before);
    }
    await done;
    return most;
  }

  test('let other work run between chunks, also before their offset and for a digest', async () => {
    const reads = new BuildReads();
    const { pack, packing } = makeBuild(64);
    let skipped = 0;
    const onSkipped = () => {
      skipped += 1;
    };
    const stream = reads.open(pack, { from: 63 * CHUNK.length + 1, onSkipped });
    const text = new Response(stream).bytes();
    // The chunk that exceeds the share of a turn is packed before its read waits.
    expect(await mostInTurn(packing, text)).toBeLessThanOrEqual(EACH_TURN_MAX + 1);
    expect([(await text).length, skipped]).toEqual([CHUNK.length - 1, 63]);
    expect(await mostInTurn(packing, reads.hash('a game', pack))).toBeLessThanOrEqual(EACH_TURN_MAX + 1);
  });

  test('end when their reader disconnects before the offset', async () => {
    const reads = new BuildReads();
    const { pack, packing } = makeBuild(1_000_000);
    const stream = reads.open(pack, { from: 1_000_000 * CHUNK.length - 1 });
    await waitFor(() => packing.chunks > 2, 'its first chunks');
    await stream?.cancel();
    expect(packing.is_ended).toBe(true);
    expect(packing.chunks).toBeLessThan(1_000_000);
  });

  test('have a maximum, and each counts once, whether it is read, fails, or is cancelled', async () => {
    const reads = new BuildReads(2);
    const ends: string[] = [];
    const open = (name: string, pack = makeBuild(1).pack) => reads.open(pack, { onClosed: () => void ends.push(name) });
    const cancelled = open('cancelled');
    const read = open('read');
    expect([open('too many'), reads.count().used]).toEqual([undefined, 2]);
    await cancelled?.cancel();
    await cancelled?.cancel();
    const failing = open('failed', () => {
      throw new Error('its files are gone');
    });
    expect(open('too many')).toBeUndefined();
    await expect(new Response(failing).bytes()).rejects.toThrow('its files are gone');
    await new Response(read).bytes();
    expect([reads.count().used, ends.toSorted()]).toEqual([0, ['cancelled', 'failed', 'read']]);
  });

  test('hash two builds at a time', async () => {
    const reads = new BuildReads();
    let running_count = 0;
    let most = 0;
    async function* pack() {
      running_count += 1;
      most = Math.max(most, running_count);
      for (let chunk = 0; chunk < 3; chunk += 1) {
        await nextTurn();
        yield CHUNK;
      }
      running_count -= 1;
    }
    const hashes = await Promise.all(Array.from({ length: 6 }, (_, index) => reads.hash(`game ${index}`, pack)));
    const content = new Uint8Array(3 * CHUNK.length);
    expect(hashes).toEqual(hashes.map(() => ({ sha256: sha256(content), bytes: content.length })));
    expect(most).toBe(2);
  });

  test('hash builds in turns of their games', async () => {
    const reads = new BuildReads();
    const { promise: is_released, resolve: release } = Promise.withResolvers<void>();
    async function* packSlowly() {
      await is_released;
      yield CHUNK;
    }
    const of_one = Array.from({ length: 4 }, () => reads.hash('one', packSlowly));
    // It does not wait for those of the other game.
    expect(await reads.hash('other', makeBuild(1).pack)).toMatchObject({ bytes: CHUNK.length });
    release();
    expect(await Promise.all(of_one)).toHaveLength(4);
  });
});
