import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { followOutput } from '../../../src/features/servers/runtimes/engine/output-follower.ts';
import { createOutputFiles } from '../../../src/features/servers/runtimes/output/output-files.ts';
import { waitFor } from '../../support/wait.ts';

const directory = mkdtempSync(join(tmpdir(), 'muster-engine-output-'));
afterAll(() => rmSync(directory, { recursive: true }));

const LIMITS = { bytes_max: 1_024 ** 2, backlog_bytes_max: 1_024 ** 2 };
/** The ages of lines are as of this moment. */
const BEGAN_MS = Date.now();

/** A frame of an engine's log, with a line of this age. */
function frameOf(text: string, age_ms: number): Buffer {
  const payload = Buffer.from(`${new Date(BEGAN_MS - age_ms).toISOString()} ${text}`);
  const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

describe('the output of a container that was copied from its engine', () => {
  /** Returns a function that copies the frames of an engine's log, and returns a reader of the copy. */
  function followerOf(frames: Buffer[]) {
    const folder = mkdtempSync(join(directory, 'server-'));
    const files = { std_out: join(folder, 'std_out'), std_err: join(folder, 'std_err') };
    for (const file of Object.values(files)) writeFileSync(file, '');
    return async (output_files = createOutputFiles()) => {
      await followOutput({
        files,
        positions: join(folder, 'positions'),
        open: async () => new Response(Buffer.concat(frames)).body ?? new ReadableStream(),
        onWritten: (stream, reached) => output_files.noteReached(files[stream], reached),
      });
      return (from: string | undefined) => output_files.read(files.std_out, { from, ...LIMITS });
    };
  }

  /** Expects pieces that end at these places. Their lines had these ages at `BEGAN_MS`, and may be older now. */
  function expectAges(written: readonly { until: number; age_ms: number }[] = [], expected: [number, number][]) {
    const passed_ms = Date.now() - BEGAN_MS;
    expect(written.map(({ until }) => until)).toEqual(expected.map(([until]) => until));
    for (const [index, [, age_ms]] of expected.entries()) {
      expect(written[index]?.age_ms).toBeWithin(age_ms, age_ms + passed_ms + 1);
    }
  }

  test('has the times of the engine, also of lines that were written while the service was stopped', async () => {
    const follow = followerOf([frameOf('a\n', 60_000), frameOf('b\n', 30_000), frameOf('c\n', 10_000)]);
    const read = await follow();
    const { bytes, written } = await read(undefined);
    expect(Buffer.from(bytes).toString()).toBe('a\nb\nc\n');
    expectAges(written, [
      [2, 60_000],
      [4, 30_000],
      [6, 10_000],
    ]);
  });

  test('has them behind a resume point, and after another copy of the same frames', async () => {
    const follow = followerOf([frameOf('a\n', 60_000), frameOf('b\n', 30_000), frameOf('c\n', 10_000)]);
    const output_files = createOutputFiles();
    await follow(output_files);
    const read = await follow(output_files);
    await read(undefined);
    const { bytes, written } = await read('2');
    expect(Buffer.from(bytes).toString()).toBe('b\nc\n');
    expectAges(written, [
      [2, 30_000],
      [4, 10_000],
    ]);
  });

  test('has no bytes that the container did not write after a flood was dropped', async () => {
    const folder = mkdtempSync(join(directory, 'server-'));
    const files = { std_out: join(folder, 'std_out'), std_err: join(folder, 'std_err') };
    for (const file of Object.values(files)) writeFileSync(file, '');
    const output_files = createOutputFiles({ are_copies: true });
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const following = followOutput({
      files,
      positions: join(folder, 'positions'),
      open: async () => readable,
      onWritten: (stream, reached) => output_files.noteReached(files[stream], reached),
    });
    const engine = writable.getWriter();
    const line = `${'y'.repeat(1_023)}\n`;
    const FLOOD_LINES = 4 * 1_024;
    await engine.write(Buffer.concat(Array.from({ length: FLOOD_LINES }, () => frameOf(line, 1_000))));
    await waitFor(() => statSync(files.std_out).size === FLOOD_LINES * line.length, 'the flood');
    let from: string | undefined;
    const texts: string[] = [];
    const read = async () => {
      const piece = await output_files.read(files.std_out, { from, ...LIMITS });
      texts.push(Buffer.from(piece.bytes).toString());
      from = piece.resumeAfter(piece.bytes.length);
    };
    // This drops all but the end of the flood, and the next one frees the space of everything until then.
    await read();
    const { size } = statSync(files.std_out);
    await engine.write(frameOf('meanwhile\n', 0));
    await waitFor(() => statSync(files.std_out).size > size, 'more output');
    await read();
    expect(statSync(files.std_out).blocks * 512).toBeLessThan(1_024 ** 2);
    await engine.write(frameOf('after\n', 0));
    await engine.close();
    await following;
    await read();
    expect(texts.at(-1)).toBe('after\n');
    expect(texts.join('')).not.toContain('\0');
  });

  test.each(['', '{"std_out":{"ti'])(
    'is copied from its beginning if a full disk cut its positions: "%s"',
    async (text) => {
      const folder = mkdtempSync(join(directory, 'server-'));
      const files = { std_out: join(folder, 'std_out'), std_err: join(folder, 'std_err') };
      for (const file of Object.values(files)) writeFileSync(file, '');
      const positions = join(folder, 'positions');
      writeFileSync(positions, text);
      await followOutput({
        files,
        positions,
        open: async () => new Response(Buffer.concat([frameOf('a\n', 1_000)])).body ?? new ReadableStream(),
        onWritten() {},
      });
      expect(await Bun.file(files.std_out).text()).toBe('a\n');
    },
  );

  test('has the times of the lines of a long log, to a second', async () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => 200_000 - index);
    const follow = followerOf(lines.map((age_ms) => frameOf('l\n', age_ms)));
    const { written = [] } = await (await follow())(undefined);
    expect(written.at(-1)?.until).toBe(200_000);
    const passed_ms = Date.now() - BEGAN_MS;
    const wrong = written.filter(({ until, age_ms }) => {
      const age_of_last_ms = 200_000 - (until / 2 - 1);
      return age_ms < age_of_last_ms || age_ms > age_of_last_ms + 1_000 + passed_ms;
    });
    expect(wrong).toEqual([]);
    const gaps = written.map(({ until }, index) => (until - (written[index - 1]?.until ?? 0)) / 2);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1_000);
  });
});
