import { exitStatusOf } from '../linux/exit-status.ts';
import { CONTAINERS, IMAGE_ANNOTATION } from './pod-manifest.ts';
import type { Pod } from './pod-shapes.ts';

/** The state of a server, as the cluster reports it. */
export type PodObservation =
  /**
   * It does not run yet. `needs_operator`: it probably will not run until its operator changes something. `is_pull`:
   * its node cannot pull its image from Muster, which may also be because Muster was busy with the image or restarted.
   */
  | { is: 'pending'; reason: string; needs_operator: boolean; is_pull?: true }
  | { is: 'running' }
  /** `lost_at`: when, by the clock of the cluster. It tells one loss from another, and is compared with no other clock. */
  | { is: 'unreachable'; lost_at: string }
  | ({ is: 'ended'; exit_code: number | null; exit_signal: string | null } & EndCause);

/** Why a pod ended, if it did not end by itself. */
interface EndCause {
  reason?: string;
  /** Whether neither the program nor Muster caused it, but the cluster or its operator. */
  is_disruption?: true;
}

type ContainerState = NonNullable<NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]['state']>;

const MESSAGE_CHARACTERS_MAX = 300;

/** Reasons why a container waits, in words for a game developer. */
const WAITING: Record<string, string> = {
  PodInitializing: 'its build is being fetched',
  ContainerCreating: 'its pod is being set up',
  ErrImagePull: 'the image of Muster cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_IMAGE',
  ImagePullBackOff:
    'the image of Muster cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_IMAGE',
  ErrImageNeverPull: 'the image of Muster is not on its node: tell the operator',
  InvalidImageName: 'the name of the image of Muster is wrong: tell the operator to check MUSTER_KUBERNETES_IMAGE',
  CreateContainerConfigError: 'its node cannot set up the container: tell the operator',
  CreateContainerError: 'its node cannot create the container: tell the operator',
  RunContainerError: 'its node cannot start the container: tell the operator',
};
const NO_PULL = 'its image cannot be pulled to its node: tell the operator to check MUSTER_KUBERNETES_REGISTRY';
/** Reasons why a container with an image of its own waits, in words for a game developer. */
const WAITING_FOR_IMAGE: Record<string, string> = {
  ...WAITING,
  ErrImagePull: NO_PULL,
  ImagePullBackOff: NO_PULL,
  InvalidImageName: NO_PULL,
  RegistryUnavailable: NO_PULL,
};
/** The name of an image in a message. It has the token by which nodes pull it. */
const IMAGE_NAME = /[^\s"]*\/[0-9a-f-]{36}\/[0-9a-f]{64}[^\s"]*?(?=:?["\s]|:?$)/g;
/** Reasons that usually last until the operator changes something. */
const NEEDS_OPERATOR = new Set(
  Object.keys(WAITING_FOR_IMAGE).filter((reason) => /^(Err|ImagePull|Invalid|Registry|Create|Run)/.test(reason)),
);

/** Reasons that may be temporary if the image comes from Muster, which may be busy or restart. */
const PULLS = new Set(['ErrImagePull', 'ImagePullBackOff', 'RegistryUnavailable']);

/** Messages of evictions of pods that exceeded a limit of their own. */
const DISK_EXCEEDED = /exceeds the (total )?limit|exceeded its local ephemeral storage limit/;
/** Reasons why a node ended or refused a pod, in words for a game developer. */
const FAILED: Record<string, string> = {
  Evicted: 'its node ran short of resources and evicted it',
  Preempting: 'its node ended it for a more important pod',
  Terminated: 'its node was shut down',
  NodeShutdown: 'its node was shut down',
  Shutdown: 'its node was shut down',
  NodeLost: 'its node was lost',
  DeadlineExceeded: 'it ran longer than the cluster allows',
  UnexpectedAdmissionError: 'its node refused it',
  NodePorts: 'its port was in use on its node',
  HostPortConflict: 'its port was in use on its node',
};
const OUT_OF = /^OutOf(\w+)$/;
const OUT_OF_MEMORY = 'OOMKilled';
/** The container's end is not known any more (kubernetes#104107). */
const UNKNOWN = 'ContainerStatusUnknown';

/** Replaces the names of images in a message of the cluster, because developers must not get their tokens. */
export function hideImageNames(message: string): string {
  return message.replaceAll(IMAGE_NAME, 'its image');
}

/** Returns the state of a server by that of its pod. */
export function observePod(pod: Pod): PodObservation {
  const { status } = pod;
  const state = stateOf(status?.containerStatuses, CONTAINERS.server);
  if (state?.terminated && state.terminated.reason !== UNKNOWN && status?.reason === undefined) {
    return { is: 'ended', ...endOf(state), ...causeOfEnd(pod, state) };
  }
  if (state?.terminated || status?.phase === 'Failed' || status?.phase === 'Succeeded') {
    const fetching = stateOf(status?.initContainerStatuses, CONTAINERS.build)?.terminated;
    const has_failed = fetching !== undefined && fetching.exitCode !== 0;
    const cause = has_failed ? { reason: describeFetch(fetching) } : causeOfEnd(pod, state);
    return { is: 'ended', exit_code: null, exit_signal: null, ...cause };
  }
  if (state?.running) {
    const lost_at = findLossOfNode(pod);
    return lost_at === undefined ? { is: 'running' } : { is: 'unreachable', lost_at };
  }
  return observePending(pod, state);
}

/** Returns why a pod was ended from outside; an empty cause if it was not. */
export function findOutsideCause(pod: Pod): EndCause {
  const { reason, message = '' } = pod.status ?? {};
  if (reason === 'Evicted' && DISK_EXCEEDED.test(message)) {
    return { reason: `it exceeded its disk limit${quoted(message)}` };
  }
  const disruption = describeDisruption(pod);
  return disruption === undefined ? {} : { reason: disruption, is_disruption: true };
}

function describeDisruption({ metadata, status }: Pod): string | undefined {
  const { reason, message } = status ?? {};
  const [, resource] = OUT_OF.exec(reason ?? '') ?? [];
  if (resource !== undefined) return `its node has too little ${resource} left`;
  const words = reason === undefined ? undefined : FAILED[reason];
  if (words !== undefined) return `${words}${quoted(message)}`;
  if (status?.phase === 'Failed' && reason !== undefined) return `its node ended it: ${reason}${quoted(message)}`;
  return metadata.deletionTimestamp === undefined ? undefined : 'its pod was deleted from the cluster';
}

function observePending(pod: Pod, state: ContainerState | undefined): PodObservation {
  const { status, spec } = pod;
  const fetching = stateOf(status?.initContainerStatuses, CONTAINERS.build);
  if (fetching?.terminated && fetching.terminated.exitCode !== 0) {
    return { is: 'ended', exit_code: null, exit_signal: null, reason: describeFetch(fetching.terminated) };
  }
  const unplaced = status?.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  if (unplaced) return { is: 'pending', reason: describeUnplaced(unplaced.message), needs_operator: false };
  if (spec?.nodeName === undefined) return { is: 'pending', reason: 'it waits for a node', needs_operator: false };
  const waiting = fetching?.waiting ?? state?.waiting;
  // The server's container waits for the one that fetches the build, which may wait for a reason of its own.
  const { reason = 'ContainerCreating', message } = waiting ?? {};
  const needs_operator = NEEDS_OPERATOR.has(reason);
  const has_image = pod.metadata.annotations?.[IMAGE_ANNOTATION] !== undefined;
  const words = (has_image ? WAITING_FOR_IMAGE : WAITING)[reason] ?? `its node says ${reason}`;
  return {
    is: 'pending',
    reason: needs_operator ? `${words}${quoted(message)}` : words,
    needs_operator,
    ...(has_image && PULLS.has(reason) && { is_pull: true }),
  };
}

function describeUnplaced(message = ''): string {
  const said = quoted(message);
  if (/free ports/.test(message)) return `no node has its port free${said}`;
  if (/Insufficient/.test(message)) return `no node has room for it${said}`;
  return `no node can take it${said}`;
}

function describeFetch({ reason, message }: { reason?: string; message?: string }): string {
  if (reason === OUT_OF_MEMORY) return 'its build could not be fetched: it has too little memory to unpack it';
  return `its build could not be fetched${quoted(message)}`;
}

function causeOfEnd(pod: Pod, state: ContainerState | undefined): EndCause {
  if (state?.terminated?.reason === OUT_OF_MEMORY) return { reason: 'it exceeded its memory' };
  if (state?.terminated?.reason === 'StartError' || state?.terminated?.reason === 'ContainerCannotRun') {
    return { reason: `its node could not start it${quoted(state.terminated.message)}` };
  }
  return findOutsideCause(pod);
}

function endOf(state: ContainerState) {
  const { exitCode = 0 } = state.terminated ?? {};
  return exitStatusOf(exitCode);
}

const quoted = (message = '') => {
  const text = hideImageNames(message.trim()).slice(0, MESSAGE_CHARACTERS_MAX);
  return text === '' ? '' : ` (${text})`;
};

function stateOf(statuses: NonNullable<Pod['status']>['containerStatuses'], name: string): ContainerState | undefined {
  return statuses?.find((one) => one.name === name)?.state;
}

/**
 * Returns when the cluster lost the node of a pod; undefined if it has it. The cluster marks the pods of a silent node as not
 * ready, and gives no reason. Kubelets give one.
 */
function findLossOfNode({ status }: Pod): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const is_lost = ready?.status === 'False' && ready.reason === undefined;
  return is_lost ? (ready.lastTransitionTime ?? '') : undefined;
}
