import type { Challenge } from 'altcha-lib';
import type { SolvedWork, WorkerOrder } from '../bots/protocol.ts';

/** The address of the worker's script: the build puts it here. */
declare const BOTS_WORKER: string;

/** Trusted Types, which the compiler does not know yet. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
}

/** Starts a worker with its first order. */
export function startWorker(order: WorkerOrder): Worker {
  const worker = new Worker(workerAddress());
  worker.postMessage(order);
  return worker;
}

/** Solves a proof of work beside the page, which has no copy of the code for that. */
export function solveWork(challenge: Challenge): Promise<SolvedWork> {
  const worker = startWorker({ challenge });
  return new Promise<SolvedWork>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  }).finally(() => worker.terminate());
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined;

/** Returns the one address from which this page may run a script besides its own. */
function workerAddress(): string {
  const { trustedTypes } = globalThis as unknown as { trustedTypes?: TrustedTypes };
  if (!trustedTypes) return BOTS_WORKER;
  policy ??= trustedTypes.createPolicy('muster-bots', { createScriptURL: () => BOTS_WORKER });
  return policy.createScriptURL(BOTS_WORKER);
}
