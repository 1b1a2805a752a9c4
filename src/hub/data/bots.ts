import { signal } from '@preact/signals';
import type { BotsOrder, BotsReport } from '../bots/protocol.ts';
import { startWorker } from './worker.ts';

export const report = signal<BotsReport | undefined>(undefined);
export const are_running = signal(false);

let worker: Worker | undefined;

/** Lets bots play until they are stopped. */
export function startBots(order: BotsOrder): void {
  stopBots();
  report.value = undefined;
  worker = startWorker(order);
  worker.addEventListener('message', ({ data }: MessageEvent<BotsReport>) => {
    report.value = data;
  });
  are_running.value = true;
}

/** Ends the bots. Their sockets close, and with them their seats. */
export function stopBots(): void {
  worker?.terminate();
  worker = undefined;
  are_running.value = false;
}
