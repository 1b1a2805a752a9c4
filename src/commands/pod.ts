import { writeFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readPodOrder } from '../config.ts';
import { hashStream } from '../features/builds/hashed-stream.ts';
import { unpackArchive } from '../features/builds/unpack.ts';
import { runFirstProcess } from '../features/servers/runtimes/kubernetes/inside/first-process.ts';
import { BuildOrder, decodeOrder, ServerOrder } from '../features/servers/runtimes/kubernetes/pod-messages.ts';
import { ORDER_VARIABLE, POD_FOLDERS } from '../features/servers/runtimes/kubernetes/pod-names.ts';

/** Time for one attempt to fetch a build, with its answer and its bytes. */
const FETCH_MAX_MS = 10 * 60_000;
/** Time for the machine to answer, in which it may restart. */
const ANSWER_MAX_MS = 2 * 60_000;
const FETCH_AGAIN_AFTER_MS = 1_000;
/** Where Kubernetes reads why a container failed. */
const TERMINATION_LOG = '/dev/termination-log';

/** Runs the server of a pod. Used in pods only. */
export async function runPodServer(): Promise<number> {
  return await runFirstProcess(decodeOrder(ServerOrder, readPodOrder(ORDER_VARIABLE)));
}

/** Fetches and unpacks the build of a pod. Used in pods only. */
export async function fetchPodBuild(): Promise<number> {
  const order = decodeOrder(BuildOrder, readPodOrder(ORDER_VARIABLE));
  for (const started = performance.now(); ; await Bun.sleep(FETCH_AGAIN_AFTER_MS)) {
    try {
      await fetchBuild(order);
      return 0;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      console.error(reason);
      if (performance.now() - started < ANSWER_MAX_MS) continue;
      const hint = 'tell the operator to check MUSTER_KUBERNETES_HOST';
      writeFileSync(TERMINATION_LOG, `Muster could not be reached from its node: ${reason}; ${hint}`);
      return 1;
    }
  }
}

async function fetchBuild({ url, token, sha256 }: BuildOrder): Promise<void> {
  const signal = AbortSignal.timeout(FETCH_MAX_MS);
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal, redirect: 'error' });
  const { origin } = new URL(url);
  if (!answer.ok || !answer.body) throw new Error(`${origin} answers with the status ${answer.status}`);
  // A part of an earlier attempt may be there.
  for (const name of await readdir(POD_FOLDERS.build)) await rm(join(POD_FOLDERS.build, name), { recursive: true });
  const file = hashStream(answer.body);
  await unpackArchive(file.stream, POD_FOLDERS.build);
  if ((await file.digest()) !== sha256) throw new Error('the build was damaged on its way');
}
