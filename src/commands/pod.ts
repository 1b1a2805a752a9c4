import { writeFileSync } from 'node:fs';
import { readPodOrder } from '../config.ts';
import { runFirstProcess } from '../features/servers/runtimes/kubernetes/inside/first-process.ts';
import { BuildOrder, decodeOrder, ServerOrder } from '../features/servers/runtimes/kubernetes/pod-messages.ts';
import { ORDER_VARIABLE, POD_FOLDERS } from '../features/servers/runtimes/kubernetes/pod-names.ts';
import { fetchBuild } from './pod-build.ts';

/** Where Kubernetes reads why a container failed. */
const TERMINATION_LOG = '/dev/termination-log';

/** Runs the server of a pod. Used in pods only. */
export async function runPodServer(): Promise<number> {
  return await runFirstProcess(decodeOrder(ServerOrder, readPodOrder(ORDER_VARIABLE)));
}

/** Fetches and unpacks the build of a pod. Used in pods only. */
export async function fetchPodBuild(): Promise<number> {
  const order = decodeOrder(BuildOrder, readPodOrder(ORDER_VARIABLE));
  const failure = await fetchBuild(order, POD_FOLDERS.build);
  if (failure === undefined) return 0;
  writeFileSync(TERMINATION_LOG, failure);
  return 1;
}
