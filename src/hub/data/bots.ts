import { signal } from '@preact/signals';
import type { BotsOrder, BotsReport } from '../bots/protocol.ts';

/** The address of the worker's script: the build puts it here. */
declare const BOTS_WORKER: string;

/** Trusted Types, which the compiler does not know yet. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
}

export const report = signal<BotsReport | undefined>(undefined);
export const are_running = signal(false);

let worker: Worker | undefined;

/** Lets bots play until they are stopped. */
export function startBots(order: BotsOrder): void {
  stopBots();
  report.value = undefined;
  worker = new Worker(workerAddress());
  worker.addEventListener('message', ({ data }: MessageEvent<BotsReport>) => {
    report.value = data;
  });
  worker.postMessage(order);
  are_running.value = true;
}

/** Ends the bots. Their sockets close, and with them their seats. */
export function stopBots(): void {
  worker?.terminate();
  worker = undefined;
  are_running.value = false;
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined;

/** Returns the one address from which this page may run a script besides its own. */
function workerAddress(): string {
  const { trustedTypes } = globalThis as unknown as { trustedTypes?: TrustedTypes };
  if (!trustedTypes) return BOTS_WORKER;
  policy ??= trustedTypes.createPolicy('muster-bots', { createScriptURL: () => BOTS_WORKER });
  return policy.createScriptURL(BOTS_WORKER);
}
