import { setTimeout as pause } from 'node:timers/promises';
import { type Static, Type } from '@sinclair/typebox';
import { ServiceError } from '../../../../platform/errors.ts';
import type { DiskUse, UsageReading } from '../runtime.ts';
import { type EngineClient, EngineRefusal } from './engine-client.ts';
import { LABELS, type makeEngineContainer, nameOf } from './engine-container.ts';

/** Time for an engine to set up a container: with some storage drivers it copies the files of the image. */
const START_TIMEOUT_MS = 120_000;
/** Time for a killed container to end. */
const END_TIMEOUT_MS = 10_000;
/** How often a container is created while its name is taken, and the pause before the next try: ten seconds in all. */
const CREATIONS_MAX = 50;
const CREATION_PAUSE_MS = 200;
/**
 * Time to count what a container has on the disk. Enough for any container within its limit, so one that takes longer
 * counts as above it.
 */
export const DISK_TIMEOUT_MS = 30_000;
/** The statuses that say that there is no such container, and that a name is taken. */
const [NOT_FOUND, CONFLICT] = [404, 409];
const NS_PER_MS = 1_000_000;
/** The init, and the program that it has started. */
const PROCESSES_MIN = 2;

const Labels = Type.Record(Type.String(), Type.String());
const Listed = Type.Array(
  Type.Object({ Labels: Type.Optional(Type.Union([Labels, Type.Null()])), State: Type.String() }),
);
const Inspected = Type.Object({
  Id: Type.String(),
  Config: Type.Object({ Labels: Type.Optional(Type.Union([Labels, Type.Null()])) }),
  State: Type.Object({ Running: Type.Boolean(), ExitCode: Type.Integer(), OOMKilled: Type.Boolean() }),
  HostConfig: Type.Object({ Memory: Type.Integer() }),
});
const Sized = Type.Object({ SizeRw: Type.Optional(Type.Integer()) });
const Processes = Type.Object({ Processes: Type.Array(Type.Unknown()) });
/** Cached files that the kernel drops when memory is needed: by control groups of version 1, and of version 2. */
const MemoryCounters = Type.Object({
  total_inactive_file: Type.Optional(Type.Number()),
  inactive_file: Type.Optional(Type.Number()),
});
/** An engine leaves out what it does not know. */
const Usage = Type.Object({
  cpu_stats: Type.Object({ cpu_usage: Type.Object({ total_usage: Type.Number() }) }),
  memory_stats: Type.Optional(
    Type.Object({
      usage: Type.Optional(Type.Number()),
      stats: Type.Optional(Type.Union([Type.Null(), MemoryCounters])),
    }),
  ),
  networks: Type.Optional(
    Type.Union([
      Type.Null(),
      Type.Record(Type.String(), Type.Object({ rx_bytes: Type.Number(), tx_bytes: Type.Number() })),
    ]),
  ),
});

/** A container as the engine describes it. */
export interface EngineContainer {
  is_running: boolean;
  exit_code: number;
  was_out_of_memory: boolean;
  memory_bytes: number;
}

/** The containers of this machine's Muster. Those of others are never changed, whatever their names. */
export class EngineContainers {
  constructor(
    private readonly client: EngineClient,
    private readonly node_id: string,
  ) {}

  /** Returns the state of each container by server, as the engine names it. */
  async list(): Promise<Map<string, string>> {
    const filters = JSON.stringify({ label: [`${LABELS.machine}=${this.node_id}`] });
    const query = { all: 'true', filters };
    const listed = await this.client.read(Listed, { method: 'GET', path: '/containers/json', query });
    return new Map(
      listed.flatMap(({ Labels, State }) => {
        const server_id = Labels?.[LABELS.server];
        return server_id === undefined ? [] : [[server_id, State] as const];
      }),
    );
  }

  /** Returns the container of a server; undefined if there is none. Throws if its name belongs to another one. */
  async find(server_id: string): Promise<EngineContainer | undefined> {
    const path = `/containers/${nameOf(server_id)}/json`;
    const inspected = await this.client.read(Inspected, { method: 'GET', path }).catch(undefinedIfAbsent);
    if (!inspected) return undefined;
    const { Config, State, HostConfig } = inspected;
    if (Config.Labels?.[LABELS.machine] !== this.node_id) {
      const error = `the container ${nameOf(server_id)} of the engine is not of this Muster: rename or remove it`;
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', { error });
    }
    return {
      is_running: State.Running,
      exit_code: State.ExitCode,
      was_out_of_memory: State.OOMKilled,
      memory_bytes: HostConfig.Memory,
    };
  }

  /** Creates the container of a server. An earlier one of its name is removed. */
  async create(server_id: string, body: ReturnType<typeof makeEngineContainer>, signal: AbortSignal): Promise<void> {
    const query = { name: nameOf(server_id) };
    const request = { method: 'POST', path: '/containers/create', timeout_ms: START_TIMEOUT_MS } as const;
    for (let creation = 1; ; creation += 1) {
      // Throws if a container of another Muster has the name.
      await this.remove(server_id);
      try {
        await this.client.call({ ...request, query, body, signal });
        return;
      } catch (error) {
        // The engine may still perform a call of a service that was killed. Until that is done, only the name is taken.
        const is_refused = error instanceof EngineRefusal;
        const is_taken = is_refused && (error.status === CONFLICT || (await this.find(server_id)) !== undefined);
        if (!is_taken || creation === CREATIONS_MAX) throw error;
        await pause(CREATION_PAUSE_MS, undefined, { signal });
      }
    }
  }

  /** Starts a created container. One that runs continues. */
  async start(server_id: string, signal: AbortSignal): Promise<void> {
    await this.client.call({ ...this.#post(server_id, 'start'), signal, timeout_ms: START_TIMEOUT_MS });
  }

  /** Returns whether the init of a container has started its program. Before, it ignores signals. */
  async hasProgram(server_id: string, { is_podman }: { is_podman: boolean }): Promise<boolean> {
    // Podman runs the image's own `ps` for the options of ps.
    const query = { ps_args: is_podman ? 'pid' : '-eo pid,comm' };
    const path = `/containers/${nameOf(server_id)}/top`;
    const { Processes: processes } = await this.client.read(Processes, { method: 'GET', path, query });
    return processes.length >= PROCESSES_MIN;
  }

  async signal(server_id: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.client.call({ ...this.#post(server_id, 'kill'), query: { signal } });
  }

  /** Waits for a killed container to end. Returns whether it has ended in time. */
  async waitForEnd(server_id: string, timeout_ms = END_TIMEOUT_MS): Promise<boolean> {
    const deadline = AbortSignal.timeout(timeout_ms);
    const request = { ...this.#post(server_id, 'wait'), query: { condition: 'not-running' }, signal: deadline };
    try {
      await this.client.call({ ...request, timeout_ms: 2 * timeout_ms, expected: [NOT_FOUND] });
      return true;
    } catch (error) {
      // The engine may answer all other calls, so this is no sign that it is away.
      if (!deadline.aborted) throw error;
      return false;
    }
  }

  /** Removes the container of a server and what it wrote. */
  async remove(server_id: string): Promise<void> {
    if (!(await this.find(server_id))) return;
    const query = { force: 'true', v: 'true' };
    await this.client.call({
      method: 'DELETE',
      path: `/containers/${nameOf(server_id)}`,
      query,
      expected: [NOT_FOUND],
    });
  }

  /** Opens the output of a container from a time on. It ends when the container does. */
  openLog(server_id: string, since_seconds: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const query = { follow: 'true', stdout: 'true', stderr: 'true', timestamps: 'true', since: String(since_seconds) };
    return this.client.openStream({ method: 'GET', path: `/containers/${nameOf(server_id)}/logs`, query }, signal);
  }

  /** Returns what a container has used; undefined if it does not run. */
  async readUsage(server_id: string): Promise<UsageReading | undefined> {
    const query = { stream: 'false', 'one-shot': 'true' };
    try {
      const path = `/containers/${nameOf(server_id)}/stats`;
      const { cpu_stats, memory_stats, networks } = await this.client.read(Usage, { method: 'GET', path, query });
      // Docker answers so for a container that has ended.
      if (cpu_stats.cpu_usage.total_usage === 0 && !memory_stats?.usage) return undefined;
      const traffic = Object.values(networks ?? {});
      return {
        cpu_ms: Math.round(cpu_stats.cpu_usage.total_usage / NS_PER_MS),
        ...(memory_stats?.usage !== undefined && {
          memory_bytes: withoutCache(memory_stats.usage, memory_stats.stats),
        }),
        ...(traffic.length > 0 && {
          received_bytes: traffic.reduce((sum, { rx_bytes }) => sum + rx_bytes, 0),
          sent_bytes: traffic.reduce((sum, { tx_bytes }) => sum + tx_bytes, 0),
        }),
      };
    } catch (error) {
      if (error instanceof EngineRefusal) return undefined;
      throw error;
    }
  }

  /**
   * Returns what a container has written over its image; undefined if there is none. Engines count no files.
   *
   * An engine that takes too long for this container may still answer other calls, which a ping shows. Its answer may
   * be late by chance, so the container counts as uncountable only if it takes too long a second time, right after the
   * ping.
   */
  async readDiskUse(server_id: string, timeout_ms = DISK_TIMEOUT_MS, was_late = false): Promise<DiskUse | undefined> {
    const path = `/containers/${nameOf(server_id)}/json`;
    const deadline = AbortSignal.timeout(timeout_ms);
    const request = { method: 'GET', path, query: { size: 'true' }, signal: deadline } as const;
    try {
      const { SizeRw: bytes } = await this.client.read(Sized, { ...request, timeout_ms: 2 * timeout_ms });
      return bytes === undefined ? undefined : { bytes, files: 0 };
    } catch (error) {
      if (error instanceof EngineRefusal) return undefined;
      if (!deadline.aborted) throw error;
      await this.client.call({ method: 'GET', path: '/_ping' });
      if (!was_late) return await this.readDiskUse(server_id, timeout_ms, true);
      return { bytes: 0, files: 0, is_uncountable: true };
    }
  }

  #post(server_id: string, verb: string) {
    return { method: 'POST', path: `/containers/${nameOf(server_id)}/${verb}` } as const;
  }
}

/** Returns the memory of a container without cached files, as for other servers, if the engine counts them. */
function withoutCache(usage: number, counters: Static<typeof MemoryCounters> | null | undefined): number {
  return Math.max(0, usage - (counters?.total_inactive_file ?? counters?.inactive_file ?? 0));
}

/** Returns whether an engine refused a call because there is no such container. */
export function isAbsence(error: unknown): boolean {
  return error instanceof EngineRefusal && error.status === NOT_FOUND;
}

function undefinedIfAbsent(error: unknown): undefined {
  if (!isAbsence(error)) throw error;
}
