import { assert } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import { omitUndefined } from '../../../platform/omit-undefined.ts';
import type { Isolation, MissingRuntime, Observation, Runtime, ServerHandle } from './runtime.ts';

/** Returns a runtime that starts no more servers. Those that it has continue until they end. */
export function withoutStarts(runtime: Runtime | MissingRuntime): Runtime[] {
  return 'kinds' in runtime ? [{ ...runtime, kinds: [] }] : [];
}

/**
 * Combines runtimes of different kinds of builds into one. It remembers which of them has a server, and after a restart
 * finds it by observing the server.
 */
export function combineRuntimes(opened: readonly (Runtime | MissingRuntime)[], events: Events): Runtime {
  const runtimes = opened.filter((one) => 'kinds' in one);
  const why_missing = opened.flatMap((one) => ('kinds' in one ? [] : one.why_missing))[0];
  const owners = new Map<string, Runtime>();
  const [first] = runtimes;
  assert(first, 'there is a runtime to combine');
  const fallback = first;
  const { host } = fallback;
  const other_machines = runtimes.find((runtime) => runtime.other_machines)?.other_machines;
  /** The steps that failed for each runtime the last time, which were reported. */
  const failing = new Map<Runtime, Set<string>>(runtimes.map((runtime) => [runtime, new Set()]));

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    /** Servers that were looked for in a runtime that could not be observed: it may have them. */
    const uncertain = new Set<string>();
    for (const runtime of runtimes) {
      // Asks for a server of unknown runtime until one of them has it.
      const asked = servers.filter(({ server_id }) => {
        const owner = owners.get(server_id);
        return owner ? owner === runtime : (observed.get(server_id)?.is ?? 'absent') === 'absent';
      });
      if (asked.length === 0) continue;
      const answers = await attempt(runtime, 'observe', () => runtime.observe(asked));
      if (!answers) for (const { server_id } of asked) uncertain.add(server_id);
      for (const [server_id, seen] of answers ?? []) {
        observed.set(server_id, seen);
        if (seen.is !== 'absent') owners.set(server_id, runtime);
      }
    }
    for (const server_id of uncertain) if (observed.get(server_id)?.is === 'absent') observed.delete(server_id);
    return observed;
  }

  /**
   * Performs a step of one runtime. Returns undefined if that fails, and reports the failure unless the step also
   * failed the last time.
   */
  async function attempt<Answer>(
    runtime: Runtime,
    step: string,
    work: () => Promise<Answer> | undefined,
  ): Promise<Answer | undefined> {
    try {
      const answer = await work();
      failing.get(runtime)?.delete(step);
      return answer;
    } catch (cause) {
      if (!failing.get(runtime)?.has(step)) {
        events.emit({ event: 'runtime_failed', step, kinds: [...runtime.kinds], cause });
      }
      failing.get(runtime)?.add(step);
      return undefined;
    }
  }

  async function ownerOf(server: ServerHandle): Promise<Runtime> {
    const { server_id } = server;
    const owner = owners.get(server_id);
    if (owner) return owner;
    const is_known = (await observe([server])).has(server_id);
    if (!is_known) throw new Error('the runtime of the server is unknown, because one of them failed');
    return owners.get(server_id) ?? fallback;
  }

  /** Returns the servers that each of the runtimes may have. */
  const share = <Server extends ServerHandle>(servers: readonly Server[]): [Runtime, Server[]][] =>
    runtimes.map((runtime) => [
      runtime,
      servers.filter(({ server_id }) => (owners.get(server_id) ?? runtime) === runtime),
    ]);

  /** Asks each of the runtimes about its servers. One that fails does not keep the answers of the others. */
  async function askAll<Answer, Server extends ServerHandle>(
    step: string,
    servers: readonly Server[],
    ask: (runtime: Runtime, some: Server[]) => Promise<Map<string, Answer>> | undefined,
  ): Promise<Map<string, Answer>> {
    const answers = await Promise.all(
      share(servers).map(async ([runtime, some]) => [
        ...((await attempt(runtime, step, () => ask(runtime, some))) ?? []),
      ]),
    );
    return new Map(answers.flat());
  }

  return {
    // Two runtimes may run one kind: the first starts its servers, and the other one ends those that it has.
    kinds: [...new Set(runtimes.flatMap(({ kinds }) => kinds))],
    kinds_with_own_network: [...new Set(runtimes.flatMap((runtime) => runtime.kinds_with_own_network ?? []))],
    ...omitUndefined({ why_missing, host, other_machines }),
    get isolation() {
      return combineIsolations(runtimes);
    },
    isolationOf: (kind) => runtimes.find(({ kinds }) => kinds.includes(kind))?.isolation,
    async start(order) {
      const { kind } = order.build;
      const runtime = runtimes.find(({ kinds }) => kinds.includes(kind));
      if (!runtime) throw new Error(`no runtime of this machine runs builds of kind ${kind}`);
      owners.set(order.server_id, runtime);
      return await runtime.start(order);
    },
    observe,
    stop: async (server) => await (await ownerOf(server)).stop(server),
    async kill(servers, onGone) {
      const gone = new Set<string>();
      const shares = share(servers).filter(([, some]) => some.length > 0);
      /** How many runtimes may still have each server. */
      const left = new Map(servers.map(({ server_id }) => [server_id, owners.has(server_id) ? 1 : runtimes.length]));
      function noteGone(server_id: string): void {
        const runtimes_left = (left.get(server_id) ?? 1) - 1;
        left.set(server_id, runtimes_left);
        if (runtimes_left > 0) return;
        gone.add(server_id);
        onGone?.(server_id);
      }
      const kills = shares.map(([runtime, some]) => runtime.kill(some, noteGone));
      // A rejection must not leave kills of other runtimes under way.
      for (const killed of await Promise.allSettled(kills)) if (killed.status === 'rejected') throw killed.reason;
      return gone;
    },
    readOutput: async (server, ...query) => await (await ownerOf(server)).readOutput(server, ...query),
    async remove(server_id) {
      for (const runtime of runtimes) await runtime.remove(server_id);
      owners.delete(server_id);
    },
    async list() {
      const listed = await Promise.all(runtimes.map((runtime) => runtime.list()));
      return listed.flat();
    },
    onChange(listener) {
      for (const runtime of runtimes) runtime.onChange(listener);
    },
    readUsage: (servers) => askAll('usage', servers, (runtime, some) => runtime.readUsage?.(some)),
    measureDisk: (servers, limit) => askAll('disk', servers, (runtime, some) => runtime.measureDisk?.(some, limit)),
    findStrayPorts: (servers) => askAll('ports', servers, (runtime, some) => runtime.findStrayPorts?.(some)),
    async findServersOnPort(servers, port) {
      const on_port = await Promise.all(
        share(servers).map(async ([runtime, some]) => [...((await runtime.findServersOnPort?.(some, port)) ?? [])]),
      );
      return new Set(on_port.flat());
    },
  };
}

const LEVELS = ['off', 'partial', 'full'] as const;

/** Returns the lowest level of those runtimes that start servers, and all that is missing, with the kinds that lack it. */
function combineIsolations(runtimes: readonly Runtime[]): Isolation | undefined {
  const kinds = [...new Set(runtimes.flatMap((runtime) => runtime.kinds))];
  const starting = new Set(kinds.flatMap((kind) => runtimes.find((runtime) => runtime.kinds.includes(kind)) ?? []));
  const known = [...starting].flatMap((runtime) => (runtime.isolation ? [{ ...runtime.isolation, runtime }] : []));
  const level = LEVELS.find((one) => known.some((isolation) => isolation.level === one));
  if (level === undefined) return undefined;
  if (level === 'off') return { level, missing: [] };
  const missing = [...new Set(known.flatMap((isolation) => isolation.missing))].map((item) => {
    const lacking = known.filter((isolation) => isolation.missing.includes(item));
    if (lacking.length === known.length) return item;
    return `${item} (${lacking.flatMap(({ runtime }) => runtime.kinds).join(', ')})`;
  });
  return { level, missing };
}
