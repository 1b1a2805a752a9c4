import { afterEach, beforeEach, expect, test } from 'bun:test';
import { signal } from '@preact/signals';
import { drawInto } from '../../src/hub/data/drawing.ts';
import { waitFor } from '../support/wait.ts';

let frames: (() => void)[] = [];
const screen = globalThis as { requestAnimationFrame?: unknown; cancelAnimationFrame?: unknown };

/** Draws the frame that was asked for. */
function draw(): void {
  const [frame] = frames.splice(0);
  frame?.();
}

beforeEach(() => {
  screen.requestAnimationFrame = (frame: () => void) => frames.push(frame);
  screen.cancelAnimationFrame = () => {
    frames = [];
  };
});
afterEach(() => {
  delete screen.requestAnimationFrame;
  delete screen.cancelAnimationFrame;
});

test('hub: changes that follow each other quickly are shown as one, the latest, after a pause', async () => {
  const shown = signal(0);
  const { show, stop } = drawInto(shown);
  show(1);
  draw();
  expect(shown.value).toBe(1);
  show(2);
  show(3);
  expect(frames).toEqual([]);
  await waitFor(() => frames.length === 1, 'a frame after the pause');
  draw();
  expect(shown.value).toBe(3);
  show(4);
  stop();
  draw();
  expect(shown.value).toBe(3);
});
