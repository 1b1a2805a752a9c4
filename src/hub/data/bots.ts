import { signal } from '@preact/signals';
import type { BotsReport, BotsTask } from '../bots/protocol.ts';
import { showOutcome } from './actions.ts';
import { failureOf, startWorker } from './worker.ts';

export const report = signal<BotsReport | undefined>(undefined);
export const are_running = signal(false);

let worker: Worker | undefined;

/** Lets bots play until they are stopped, or their worker fails, which is shown as the outcome of an action. */
export function startBots(task: BotsTask): void {
  forgetBots();
  const started = startWorker(task);
  worker = started;
  started.addEventListener('message', ({ data }: MessageEvent<BotsReport>) => {
    // A report may arrive after the end of its worker.
    if (worker === started) report.value = data;
  });
  started.addEventListener('error', (event) => {
    if (worker !== started) return;
    stopBots();
    showOutcome({ error: failureOf(event) });
  });
  are_running.value = true;
}

/** Ends the bots. Their sockets close, and with them their seats. */
export function stopBots(): void {
  worker?.terminate();
  worker = undefined;
  are_running.value = false;
}

/** Ends the bots and forgets what they reported. */
export function forgetBots(): void {
  stopBots();
  report.value = undefined;
}
