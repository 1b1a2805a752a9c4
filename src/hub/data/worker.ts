import type { Challenge } from 'altcha-lib';
import type { SolvedWork, WorkerTask } from '../bots/protocol.ts';
import { notLoaded } from './scripts.ts';

/** The address of the worker's script, which the build of the hub fills in. */
declare const BOTS_WORKER: string;

/** Trusted Types, which the compiler does not know yet. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
}

/** Starts a worker with its first task. */
export function startWorker(task: WorkerTask): Worker {
  const worker = new Worker(workerAddress());
  worker.postMessage(task);
  return worker;
}

/** Solves a proof of work in a worker, because the page itself does not contain the code for that. */
export function solveWork(challenge: Challenge): Promise<SolvedWork> {
  const worker = startWorker({ challenge });
  return new Promise<SolvedWork>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(failureOf(event));
  }).finally(() => worker.terminate());
}

/** Returns why a worker failed. An event without a message says that its script could not be loaded. */
export function failureOf({ message }: Partial<ErrorEvent>): Error {
  return message === undefined ? notLoaded() : new Error(message.replace(/^Uncaught (Error: )?/, ''));
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined;

/** Returns the address of the worker: the only script besides its own that the page may run. */
function workerAddress(): string {
  const { trustedTypes } = globalThis as unknown as { trustedTypes?: TrustedTypes };
  if (!trustedTypes) return BOTS_WORKER;
  policy ??= trustedTypes.createPolicy('muster-bots', { createScriptURL: () => BOTS_WORKER });
  return policy.createScriptURL(BOTS_WORKER);
}
