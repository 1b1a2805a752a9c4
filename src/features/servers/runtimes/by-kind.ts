import type { MissingRuntime, Observation, Runtime, ServerHandle } from './runtime.ts';

/**
 * Combines runtimes of different kinds of builds into one. It remembers which of them has a server, and after a restart
 * finds it by observing the server.
 */
export function combineRuntimes(opened: readonly (Runtime | MissingRuntime)[]): Runtime {
  const runtimes = opened.filter((one) => 'kinds' in one);
  const missing = opened.flatMap((one) => ('kinds' in one ? [] : one.missing))[0];
  const owners = new Map<string, Runtime>();
  const [first] = runtimes;
  if (!first) throw new Error('there is a runtime to combine');
  const { host, isolation } = first;

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    for (const runtime of runtimes) {
      // Asks for a server of unknown runtime until one of them has it.
      const asked = servers.filter(({ server_id }) => {
        const owner = owners.get(server_id);
        return owner ? owner === runtime : (observed.get(server_id)?.is ?? 'absent') === 'absent';
      });
      if (asked.length === 0) continue;
      for (const [server_id, seen] of await runtime.observe(asked)) {
        observed.set(server_id, seen);
        if (seen.is !== 'absent') owners.set(server_id, runtime);
      }
    }
    return observed;
  }

  async function ownerOf(server: ServerHandle): Promise<Runtime> {
    if (!owners.has(server.server_id)) await observe([server]);
    return owners.get(server.server_id) ?? (first as Runtime);
  }

  /** Returns the servers that each of the runtimes may have. */
  const share = (servers: readonly ServerHandle[]): [Runtime, ServerHandle[]][] =>
    runtimes.map((runtime) => [
      runtime,
      servers.filter(({ server_id }) => (owners.get(server_id) ?? runtime) === runtime),
    ]);

  return {
    // Two runtimes may run one kind: the first starts its servers, and the other one ends those that it has.
    kinds: [...new Set(runtimes.flatMap(({ kinds }) => kinds))],
    kinds_with_own_network: [...new Set(runtimes.flatMap((runtime) => runtime.kinds_with_own_network ?? []))],
    ...(missing !== undefined && { missing }),
    ...(host !== undefined && { host }),
    ...(isolation !== undefined && { isolation }),
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
    async kill(servers) {
      const left = new Set<string>();
      for (const [runtime, some] of share(servers)) {
        if (some.length === 0) continue;
        const gone = await runtime.kill(some);
        for (const { server_id } of some) if (!gone.has(server_id)) left.add(server_id);
      }
      return new Set(servers.map(({ server_id }) => server_id).filter((server_id) => !left.has(server_id)));
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
    async readUsage(servers) {
      const used = await Promise.all(
        share(servers).map(async ([runtime, some]) => [...((await runtime.readUsage?.(some)) ?? [])]),
      );
      return new Map(used.flat());
    },
    async measureDisk(servers, limit) {
      const measured = await Promise.all(
        share(servers).map(async ([runtime, some]) => [...((await runtime.measureDisk?.(some, limit)) ?? [])]),
      );
      return new Map(measured.flat());
    },
    async findHolders(servers, port) {
      const holders = await Promise.all(
        share(servers).map(async ([runtime, some]) => [...((await runtime.findHolders?.(some, port)) ?? [])]),
      );
      return new Set(holders.flat());
    },
  };
}
