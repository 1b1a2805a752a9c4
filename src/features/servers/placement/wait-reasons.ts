import type { Database } from '../../../platform/database/database.ts';
import type { Events } from '../../../platform/events.ts';
import { Reports } from '../../../platform/reports.ts';
import type { Machines } from '../../machines/machines.ts';
import type { Logs } from '../logs/logs.ts';
import { RANGE_PORTS_MAX } from '../server-port-rules.ts';
import type { WaitReason } from '../tables.ts';
import { setWaitReasons, type WaitingRow } from './waiting-store.ts';

interface WaitReasonsDependencies {
  database: Database;
  events: Events;
  logs: Pick<Logs, 'addLine'>;
  machine: { node_id: string };
  machines: Pick<Machines, 'draining' | 'areAllDraining'>;
}

/** What a machine found when it placed servers. */
interface Findings {
  takes_servers: boolean;
  /** Why it took no server of a namespace, by namespace. */
  wait_reasons: ReadonlyMap<string, WaitReason>;
}

/** Creates the step that records why servers wait, for their developers and for operators. */
export function createWaitReasons({ database, events, logs, machine, machines }: WaitReasonsDependencies) {
  /** What this machine has recorded, by server. */
  const recorded = new Reports<WaitReason>();
  /** What this process has reported to operators, by namespace. */
  const reported = new Reports<WaitReason>();

  /** Returns why no machine takes servers, by namespace, as far as this machine knows. */
  function reasonsOf(namespaces: WaitingRow[], { takes_servers, wait_reasons }: Findings): Findings['wait_reasons'] {
    const is_draining = machines.draining().some(({ node_id }) => node_id === machine.node_id);
    if (takes_servers && !is_draining) return wait_reasons;
    // It does not know why the others take none, unless all are drained.
    if (!machines.areAllDraining()) return new Map();
    return new Map(namespaces.map(({ namespace_id }) => [namespace_id, 'machines_draining']));
  }

  /** Records why servers wait. Returns those that had another reason, or none, before. */
  async function set(reasons: ReadonlyMap<string, WaitReason>): Promise<string[]> {
    try {
      return await setWaitReasons(database.queries, reasons);
    } catch (cause) {
      for (const server_id of reasons.keys()) recorded.forget(server_id);
      throw cause;
    }
  }

  async function addLine(server_id: string, reason: WaitReason): Promise<void> {
    try {
      const text = `[muster] this server does not run yet: ${describeWait(reason)}`;
      await logs.addLine({ server_id, stream: 'std_err' }, text);
    } catch (cause) {
      events.emit({ event: 'server_step_failed', server_id, step: 'report', cause });
    }
  }

  return {
    /**
     * Records why the oldest waiting server of each namespace waits, with a line in its log. From time to time reports it to
     * operators.
     */
    async record(namespaces: WaitingRow[], findings: Findings): Promise<void> {
      const reasons = reasonsOf(namespaces, findings);
      const changed = new Map<string, WaitReason>();
      for (const { namespace_id, server_id, wait_reason } of namespaces) {
        const reason = reasons.get(namespace_id);
        if (!reason) continue;
        // Machines may have different reasons. Each records its own once, or they would replace each other's in each round.
        if (reason !== wait_reason && recorded.noteIfDue(server_id, reason)) changed.set(server_id, reason);
        if (reported.noteIfDue(namespace_id, reason)) {
          events.emit({ event: 'server_waits', server_id, namespace_id, reason });
        }
      }
      if (changed.size === 0) return;
      // Of several machines with one reason, the first one writes the line.
      for (const server_id of await set(changed)) {
        const reason = changed.get(server_id);
        if (reason) await addLine(server_id, reason);
      }
    },
  };
}

/** Explains to the developer of a server why it waits. */
export function describeWait(reason: WaitReason): string {
  switch (reason) {
    case 'group_quota':
      return "each machine of this region runs the maximum of servers for your group's games (MUSTER_SERVERS_PER_GROUP_MAX): end some, or ask the operator for more";
    case 'machine_full':
      return 'each machine of this region runs its maximum of servers (MUSTER_SERVERS_MAX): try again later, or ask the operator for more';
    case 'no_ports':
      return `each machine of this region has too few free ports for it (MUSTER_SERVER_PORTS): try again in a minute, when the ports of ended servers are free again, or ask the operator for more; port ranges of a server may have at most ${RANGE_PORTS_MAX} of these ports, and none that another server has`;
    case 'no_resources':
      return 'each machine of this region has too little processor time or memory left for it (MUSTER_RESOURCES_PERCENT): try again later, use a smaller tier, or ask the operator for more';
    case 'machines_draining':
      return 'the operator drains all machines of this region, which take no new servers until that is over: try again later, or use another region';
  }
}
