import type { Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { type Finding, toFinding } from '../../platform/findings.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { createLease, type LeaseDependencies } from './lease.ts';
import * as store from './store.ts';
import type { MachineSnapshot } from './tables.ts';
import type { Load, Machine } from './wire.ts';

export type { ClusterLease, ClusterMachine, HeldCluster, Offer } from './cluster-lease.ts';
export { isUp } from './store.ts';
export type { Load } from './wire.ts';

const NO_LOAD: Load = { servers: 0, lobbies: 0, players: 0 };

export interface MachinesDependencies extends LeaseDependencies {
  /** Returns what runs on each machine. Machines without servers may be missing. */
  loads(): Promise<Map<string, Load>>;
  /** Throws IDENTITY_NOT_ADMIN unless the caller is an administrator. */
  requireAdministrator(caller: CallerOf<'identity'>): Promise<void>;
}

/** A machine that is being drained. */
interface Draining {
  node_id: string;
  /** Whether the deadline at which its last lobbies end has passed. */
  is_deadline_over: boolean;
}

export type Machines = ReturnType<typeof createMachines>;

/** Creates the use cases of machines: list them, say which take work, and drain one. */
export function createMachines(dependencies: MachinesDependencies) {
  const { database, own, loads, requireAdministrator } = dependencies;
  const { queries } = database;
  const lease = createLease(dependencies);
  const { lockHeld, isReplaced, onDeclaredLost, lastRead } = lease;

  const isDraining = ({ drain_ts }: MachineSnapshot) => drain_ts !== null;
  /** Returns the machines of this datacenter that can take servers unless they are being drained. */
  const listUpHere = () =>
    lastRead().machines.filter(
      ({ datacenter_id, state, cluster_id }) =>
        datacenter_id === own.datacenter_id && state === 'up' && cluster_id === null,
    );

  /** Returns whether all machines of this datacenter that could take servers are being drained. */
  function areAllDraining(): boolean {
    const here = listUpHere();
    return here.length > 0 && here.every(isDraining);
  }

  async function list(): Promise<Machine[]> {
    const [machines, by_machine] = await Promise.all([store.selectMachines(queries), loads()]);
    const { late } = lastRead();
    return machines.map((machine) => ({
      ...machine,
      state: machine.state === 'up' && late.has(machine.node_id) ? 'late' : machine.state,
      load: by_machine.get(machine.node_id) ?? NO_LOAD,
    }));
  }

  async function get(node_id: string): Promise<Machine> {
    const machine = (await list()).find((one) => one.node_id === node_id);
    if (!machine) throw new ServiceError('MACHINE_NOT_FOUND', {});
    return machine;
  }

  async function setDrain(node_id: string, drain: { deadline_ms: number | undefined } | null): Promise<Machine> {
    const is_known = await database.transact((tx) => store.setDrain(tx, node_id, drain));
    if (!is_known) throw new ServiceError('MACHINE_NOT_FOUND', {});
    return await get(node_id);
  }

  return {
    lockHeld,
    isReplaced,
    onDeclaredLost,
    register: lease.register,
    stop: lease.stop,
    stopTakingServers: lease.stopTakingServers,
    startWork: lease.startWork,
    joinCluster: lease.joinCluster,
    prepareToLeaveCluster: lease.prepareToLeaveCluster,
    /** Returns the id of the cluster's machine that runs servers for this process; undefined if there is none, or not yet. */
    clusterId: () => lease.cluster_lease.machine?.node_id,
    heldIds: lease.heldIds,
    /** Returns whether another process uses the cluster of this one. */
    async isClusterShared(): Promise<boolean> {
      const cluster_id = lease.cluster_lease.machine?.node_id;
      return cluster_id !== undefined && (await store.isAnyOtherUsing(queries, { cluster_id, node_id: own.node_id }));
    },
    /**
     * Returns the machines on which no player should get a seat now: their heartbeat is overdue, their process was stopped, or they
     * are being drained.
     */
    avoided(): ReadonlySet<string> {
      const { machines, late } = lastRead();
      const avoided = machines.filter((one) => one.state !== 'up' || isDraining(one)).map(({ node_id }) => node_id);
      return new Set([...avoided, ...late]);
    },
    /** Returns the machines without a process: those whose process was stopped, and those that were declared lost. */
    withoutProcess: (): string[] =>
      lastRead()
        .machines.filter(({ state }) => state !== 'up')
        .map(({ node_id }) => node_id),
    /**
     * Returns the machines that no longer remove their own pods: those that did not come back, and the processes of a
     * cluster, whose pods belong to the cluster's machine.
     */
    machinesThatRemoveNoPods: (): string[] =>
      lastRead()
        .machines.filter(({ is_abandoned, cluster_id }) => is_abandoned || cluster_id !== null)
        .map(({ node_id }) => node_id),
    /** Returns the machines that are being drained. */
    draining: (): Draining[] =>
      lastRead()
        .machines.filter(isDraining)
        .map(({ node_id, is_drain_deadline_over }) => ({ node_id, is_deadline_over: is_drain_deadline_over })),
    areAllDraining,
    /** Returns a finding if no game server can start in this datacenter, because all of its machines are being drained. */
    async warnOfDrain(): Promise<Finding | undefined> {
      if (!areAllDraining()) return undefined;
      const ids = listUpHere().map(({ node_id }) => node_id);
      const what = `no game server can start, because all machines of this datacenter are drained: ${ids.join(', ')}`;
      return toFinding('MACHINES_DRAINED', what);
    },
    /** Returns whether another machine of this datacenter takes servers, as this process read it last. */
    isOtherSeenTakingServers: (): boolean =>
      lastRead().machines.some(
        (one) =>
          one.node_id !== own.node_id &&
          one.node_id !== lease.cluster_lease.machine?.node_id &&
          one.cluster_id === null &&
          one.datacenter_id === own.datacenter_id &&
          one.state === 'up' &&
          !isDraining(one) &&
          !lastRead().late.has(one.node_id),
      ),
    /** Returns whether another machine of this datacenter takes servers, or another process for the cluster of this one. */
    async isOtherTakingServers(tx: Tx): Promise<boolean> {
      const { node_id, datacenter_id } = own;
      const cluster_id = lease.cluster_lease.machine?.node_id;
      const is_shared = cluster_id !== undefined && (await store.isAnyOtherUsing(tx, { cluster_id, node_id }));
      const node_ids = [node_id, ...(cluster_id === undefined || is_shared ? [] : [cluster_id])];
      return await store.isOtherTakingServers(tx, { node_ids, datacenter_id });
    },
    /** Lists the machines, for administrators. */
    async list(caller: CallerOf<'identity'>): Promise<Machine[]> {
      await requireAdministrator(caller);
      return await list();
    },
    /** Returns a machine, for administrators. */
    async get(caller: CallerOf<'identity'>, node_id: string): Promise<Machine> {
      await requireAdministrator(caller);
      return await get(node_id);
    },
    /** Begins to drain a machine, or changes the deadline at which its last lobbies end. */
    async drain(caller: CallerOf<'identity'>, node_id: string, deadline_ms: number | undefined): Promise<Machine> {
      await requireAdministrator(caller);
      return await setDrain(node_id, { deadline_ms });
    },
    /** Lets a machine take new servers again. */
    async endDrain(caller: CallerOf<'identity'>, node_id: string): Promise<Machine> {
      await requireAdministrator(caller);
      return await setDrain(node_id, null);
    },
  };
}
