import { describe, expect, test } from 'bun:test';
import { observeBody } from '../../src/platform/http/observed-body.ts';
import { runPending } from '../support/wait.ts';

/** Observes content. Returns the body, and how often it ended whole and not. */
function observe(content: ReadableStream<Uint8Array>, onBytes: () => void = () => {}) {
  const ends: boolean[] = [];
  const body = observeBody(content, { onBytes, onEnd: (is_whole) => void ends.push(is_whole) });
  return { body, ends };
}

const piece = new Uint8Array(10);

describe('an observed body ends once:', () => {
  test('whole after its last byte', async () => {
    const { body, ends } = observe(new Blob([piece]).stream());
    expect(await new Response(body).bytes()).toHaveLength(piece.length);
    expect(ends).toEqual([true]);
  });

  test('not whole if it is cancelled while it is read', async () => {
    const { body, ends } = observe(new ReadableStream({ start: (sink) => sink.enqueue(piece), pull() {} }));
    const reader = body.getReader();
    await reader.read();
    const next = reader.read();
    await runPending();
    await reader.cancel();
    await next;
    await runPending();
    expect(ends).toEqual([false]);
  });

  test('not whole if its content or its observer fails', async () => {
    const failing = observe(new ReadableStream({ pull: (sink) => sink.error(new Error('lost')) }));
    await expect(new Response(failing.body).bytes()).rejects.toThrow();
    const refusing = observe(new Blob([piece]).stream(), () => {
      throw new Error('too many');
    });
    await expect(new Response(refusing.body).bytes()).rejects.toThrow();
    expect([failing.ends, refusing.ends]).toEqual([[false], [false]]);
  });
});
